"""Bundles: all light fragments of a node in one loop of Spark jobs, committed together."""
