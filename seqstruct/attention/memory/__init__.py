"""Memories of a bounded number of slots, read by softmax."""
