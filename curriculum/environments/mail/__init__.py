"""This environment is a mailbox that can be searched and read, in the manner of ART-E (OpenPipe, 2025)."""
