"""Attention by feature maps: a memory of fixed size, read by a product."""
