"""What solvers send into a sandbox, as text: it runs there and never here. Standard library only, one file each."""
