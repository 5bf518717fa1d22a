"""Stacks as attention: superposition and nondeterministic."""
