"""Alignment of a decoder to its source: additive, Luong's scores, local and location-based."""
