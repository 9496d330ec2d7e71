"""What is true: a specification and a submission go in, a verdict with its reason comes out."""
