"""Pure functions on tensors: torch and the standard library only."""
