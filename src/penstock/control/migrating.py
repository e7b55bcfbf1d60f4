"""Bringing the tables of an older version to those of this one; loaded only where there is need."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from penstock.control import migrations


def _steps() -> ScriptDirectory:
    return ScriptDirectory(str(Path(migrations.__file__).parent))


def is_known(version: str) -> bool:
    """Whether tables of this version can be brought to the newest.

    >>> is_known("4"), is_known("3")
    (True, False)
    """
    return any(step.revision == version for step in _steps().walk_revisions())


def migrate(connection: sa.Connection, version: str) -> None:
    """Changes the tables from a known version on, in the transaction that is under way."""
    newest_first = list(_steps().iterate_revisions("head", version))
    with Operations.context(MigrationContext.configure(connection)):
        for step in reversed(newest_first):
            step.module.upgrade()
