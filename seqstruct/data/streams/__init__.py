"""A text as one long stream of tokens."""
