"""The first tables that can be taken over; there is no step to them."""

from __future__ import annotations

revision = "4"
down_revision = None


def upgrade() -> None:
    """They are there."""
