"""Drawings, each one PNG, PDF or SVG."""
