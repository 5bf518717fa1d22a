"""Softmax over a window of the keys."""
