"""Formulas in prefix and infix notation: generated, parsed, and in data folders."""
