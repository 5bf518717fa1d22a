"""Memories that attention reads: linear, bounded, windows, blocks, buckets."""
