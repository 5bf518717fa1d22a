"""Superposition stacks."""
