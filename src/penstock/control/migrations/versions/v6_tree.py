"""Nodes may form a tree."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    """From 5 to 6."""
    op.add_column("penstock_nodes", sa.Column("parent", sa.String(200)))
