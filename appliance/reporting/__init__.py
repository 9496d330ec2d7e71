"""Reports about nights and promotions, for people: text, Markdown, one HTML page, pictures. Pure but for files."""
