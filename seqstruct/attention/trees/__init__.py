"""Attention by dependency trees: marginals of heads, soft children, parents."""
