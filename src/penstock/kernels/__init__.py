"""Operators with state on Arrow tables: pure functions that Spark's tasks and drivers call."""
