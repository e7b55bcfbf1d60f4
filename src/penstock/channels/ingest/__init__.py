"""Bringing streams from outside into channels."""
