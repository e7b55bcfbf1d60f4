"""Plans are recorded, a sample has its time inside, and nodes have addresses.

Plans themselves are worked out from what was submitted when the controller starts.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"

_TIMED = {
    "sqlite": "json_set(numbers, '$.at_s', at_s)",
    "postgresql": "(numbers::jsonb || jsonb_build_object('at_s', at_s))::json",
}


def upgrade() -> None:
    """From 4 to 5."""
    op.create_table(
        "penstock_plans",
        sa.Column("submission", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("plan", sa.Text, nullable=False),
    )
    op.create_table(
        "penstock_contacts",
        sa.Column("node", sa.String(200), primary_key=True),
        sa.Column("life", sa.String(40), nullable=False),
        sa.Column("address", sa.String(200), nullable=False),
        sa.Column("heard", sa.JSON, nullable=False),
        sa.Column("heard_s", sa.Float, nullable=False),
    )
    op.execute(f"UPDATE penstock_samples SET numbers = {_TIMED[op.get_bind().dialect.name]}")
