"""Sentences with trees, graphs or classes, for parsers and for what is built on their output."""
