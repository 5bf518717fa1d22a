"""Weighted finite automata and rational recurrences."""
