"""Sentences with those before them in their documents."""
