"""Tasksets of geometry, one file each: points and lines, triangles, circles and transformations."""
