"""Structured and efficient sequence models as a fairseq plugin; this module imports nothing."""

__version__ = "0.4.0"
