"""How often laws are tried."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_USUAL = 25


def tried(times: int) -> settings:
    """Tries a law this often in the working loop, and more often in a more thorough profile."""
    # How long it takes says something about the machine, not about the law.
    return settings(
        max_examples=times * settings().max_examples // _USUAL,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
