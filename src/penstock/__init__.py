"""Penstock places, balances, shares and runs continuous queries over many Spark nodes."""

__version__ = "0.1.0"
