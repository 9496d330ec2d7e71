"""Tasksets of geometry, one file each: triangles and circles."""
