"""Waiting for what other threads bring about."""

from waiting import until

__all__ = ["until"]
