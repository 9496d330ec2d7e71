"""This package samples: token ids go in; token ids and log-probabilities come out."""
