"""This package writes conversations in tokens and reads them again; it lies below agent, inference and learning."""
