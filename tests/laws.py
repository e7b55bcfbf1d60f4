"""How often laws are tried."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 25


def tried(times: int) -> settings:
    """Tries a law this often in the working loop, and more often in a more thorough profile."""
    return settings(max_examples=times * settings().max_examples // _USUAL, deadline=None)
