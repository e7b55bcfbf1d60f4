"""Submissions share streams, and what others share of a dropped one stays."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"

_TABLE = "penstock_submissions"


def upgrade() -> None:
    """From 7 to 8."""
    shared = sa.Column("sharing", sa.JSON, nullable=False, server_default="{}")
    op.add_column(_TABLE, shared)
    dropped = sa.Column("is_dropped", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column(_TABLE, dropped)
