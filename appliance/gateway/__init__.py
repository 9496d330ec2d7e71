"""Holds the gateway: an OpenAI-compatible endpoint on loopback that answers with the model in service."""
