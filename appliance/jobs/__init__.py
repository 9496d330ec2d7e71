"""Work that people submit, and the bundles they get back."""
