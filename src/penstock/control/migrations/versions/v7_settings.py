"""Settings of the system.

How systems of before were balanced was said by what was submitted; the controller that takes one
over records it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"


def upgrade() -> None:
    """From 6 to 7."""
    op.create_table(
        "penstock_settings",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("set_by", sa.String(10), nullable=False),
    )
