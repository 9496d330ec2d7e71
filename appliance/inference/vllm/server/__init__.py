"""This package is the half of the vLLM engine that runs in vLLM's own environment: plain files, no other of ours."""
