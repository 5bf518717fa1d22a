"""Attention by memories that decay and are corrected: the delta rule, its gated relatives, and what they come from."""
