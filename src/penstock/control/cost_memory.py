"""What fragments have cost in this system so far, for whoever plans the same work again."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.channels.durable import read_text, write_text
from penstock.errors import InputError
from penstock.model.canonical import work_signature
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus

log = logging.getLogger(__name__)

COSTS = "costs.json"
"""The file's name in the folder of a system."""

_LEAST_ROWS = 10_000
"""Fewer say more about starting than about work."""

_MOST_KEPT = 1_000


class CostMemory:
    """Measured costs by what a fragment does, kept in a file.

    The name of a query, where it runs and how fast its input comes do not matter; its operators and
    what they read do.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, float]] = _read(path)

    def note(self, fragment: Fragment, measured: FragmentStatus) -> bool:
        """Remembers what was measured of a fragment if it is enough; whether it was news."""
        rows, cost_us = measured.rows_in_here, measured.cost_us
        selectivity = measured.selectivity
        if rows < _LEAST_ROWS or cost_us is None or selectivity is None:
            return False
        work = work_signature(fragment)
        entry = {"cost_us": cost_us, "selectivity": selectivity}
        if measured.batches:
            entry["rows_per_batch"] = round(rows / measured.batches, 1)
        if self._known.get(work) == entry:
            return False
        self._known.pop(work, None)
        self._known[work] = entry
        return True

    def save(self) -> None:
        """Writes down what is remembered, the oldest left out where it is too much."""
        self._known = dict(list(self._known.items())[-_MOST_KEPT:])
        write_text(self._path, json.dumps(self._known, indent=1))

    def estimates(self, fragments: Iterable[Fragment]) -> Mapping[str, OperatorEstimate]:
        """What is remembered of these fragments, by name."""
        works = {fragment.name: work_signature(fragment) for fragment in fragments}
        return {
            name: OperatorEstimate(**self._known[work])
            for name, work in works.items()
            if work in self._known
        }


def _read(path: Path) -> dict[str, dict[str, float]]:
    text = read_text(path)
    try:
        found: dict[str, dict[str, float]] = json.loads(text) if text else {}
        for entry in found.values():
            OperatorEstimate(**entry)
    except (ValueError, TypeError, AttributeError, InputError) as error:
        log.warning("the measured costs in %s are begun anew: %s", path, error)
        return {}
    return found
