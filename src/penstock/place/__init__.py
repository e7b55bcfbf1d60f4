"""Where it starts: which operators run together, and where."""
