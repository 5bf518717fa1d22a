"""Softmax over blocks of the keys, chosen by place or by sorting; and scores that are no products."""
