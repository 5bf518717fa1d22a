"""Stacks as attention: superposition, nondeterministic, of strengths, and of hidden states."""
