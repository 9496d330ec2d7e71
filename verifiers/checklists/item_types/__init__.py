"""Item types."""
