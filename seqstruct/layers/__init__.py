"""Recurrent, positional and parsing layers: torch, ops and attention alone."""
