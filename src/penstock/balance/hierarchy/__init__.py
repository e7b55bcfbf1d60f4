"""Neighbours in a tree of nodes that negotiate who runs which operators."""
