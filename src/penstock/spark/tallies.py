"""Rows counted batch by batch, each batch once, whoever runs it and however often."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.channels.durable import read_text, write_text
from penstock.errors import RunError


def tally(path: Path) -> dict[str, int]:
    """What is counted in a file so far: the total, and the last batch that is in it."""
    text = read_text(path)
    if text is None:
        return {"batch": -1, "rows": 0}
    try:
        found = json.loads(text)
        return {"batch": int(found["batch"]), "rows": int(found["rows"])}
    except (ValueError, TypeError, KeyError):
        hint = "It only counts rows for people to see: delete it, and counting starts anew."
        raise RunError(f"the file {path} is damaged", hint=hint) from None


def add_to_tally(path: Path, batch_id: int, rows: int) -> None:
    """Counts the rows of a batch, unless they are counted already."""
    counted = tally(path)
    if batch_id > counted["batch"]:
        text = json.dumps({"batch": batch_id, "rows": counted["rows"] + rows})
        write_text(path, text, synced=False)
