"""Simulated worlds: the same plans and moves as on real nodes, in simulated time."""
