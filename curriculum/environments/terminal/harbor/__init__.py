"""Harbor task folders, in and out (harborframework.com/docs/tasks)."""
