"""What a batch and a row cost each kind of work, as measured on a real engine.

A table came with this version (``costs.json`` beside this file). ``penstock bench costs`` and
``bench hop`` measure this machine and keep the table with what they find in the user's cache, where
it takes precedence; nothing in either is guessed. Measured costs of a running deployment take
precedence over both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from penstock.errors import InputError
from penstock.model.fragments import Fragment

READING = "reading"
"""The kind that stands for what a fragment needs to read a row."""

TRANSFER = "transfer"
"""The kind that stands for what a row costs more when its reader is on another node."""

STATELESS = "stateless"
"""The kind of a batch in which nothing is remembered."""

LIGHT = "light"
"""The kind of what a light fragment adds to a round of its bundle, and to each row of it."""

LIGHT_ROUND = "light_round"
"""The kind of a round of a bundle over a stream, however many members it has."""

LIGHT_READING = "light_reading"
"""The kind that stands for what a bundle needs to read a row, for all its members together."""

LIGHT_JOIN = "light_join"
"""The kind that stands for what a light join needs to read a row and to look for its partners."""

PAIR = "pair"
"""The kind that stands for what a light join needs to give a pair of rows."""

COSTS = "PENSTOCK_COSTS"
"""The environment variable that names another file than the one in the user's cache."""


@dataclass(frozen=True)
class CostTable:
    """Microseconds of processor time per input row by kind of operator, and where they come from.

    A sliding window puts a row into several groups: its cost is per row and group. ``batch_ms`` are
    milliseconds of processor time per batch, however few rows it has, by the kind of operator that
    remembers something in it.
    """

    cost_us: Mapping[str, float]
    machine: str
    date: str
    batch_ms: Mapping[str, float] = field(default_factory=dict)

    def of(self, kind: str) -> float | None:
        """The cost of a kind of operator; None where none was measured."""
        return self.cost_us.get(kind)

    def of_batch(self, fragment: Fragment, light: Collection[str] = ()) -> float | None:
        """Milliseconds a batch of the fragment costs in itself; None where none was measured.

        ``light`` are the names of fragments that are members of bundles.
        """
        return self.batch_ms.get(batch_kind(fragment, light))


def batch_kind(fragment: Fragment, light: Collection[str] = ()) -> str:
    """The kind of a fragment's batches: light, or that of the operator with state, if any."""
    if fragment.name in light:
        return LIGHT
    kinds = [operator.kind for operator in fragment.operators if operator.stateful]
    return kinds[0] if kinds else STATELESS


@lru_cache
def measured_costs() -> CostTable:
    """What is known: of this machine where it was measured, else what came with this version."""
    path = kept_costs_path(os.environ)
    if path.is_file():
        return read_costs(path)
    return CostTable(**json.loads((files("penstock.load") / "costs.json").read_text("utf-8")))


def kept_costs_path(env: Mapping[str, str]) -> Path:
    """Where costs of this machine are kept.

    >>> kept_costs_path({"HOME": "/home/ann"}).as_posix()
    '/home/ann/.cache/penstock/costs.json'
    """
    if chosen := env.get(COSTS):
        return Path(chosen)
    cache = env.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache else Path(env.get("HOME") or Path.home()) / ".cache"
    return folder / "penstock" / "costs.json"


def read_costs(path: Path) -> CostTable:
    """The table in a file."""
    try:
        return CostTable(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} is no table of costs: {error}",
            hint="Remove it, and run penstock bench costs to measure them again.",
        ) from None
