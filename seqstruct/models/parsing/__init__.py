"""Parsers inside of networks."""
