"""Softmax over all keys, and what normalises scores in another way: sigmoid, gated, renormalised, segments, hashing."""
