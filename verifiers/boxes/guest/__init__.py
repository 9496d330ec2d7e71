"""Programs of ours that are run in a sandbox, over what a person wrote."""
