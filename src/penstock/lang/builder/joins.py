"""What the joins of a flow work out from what was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from penstock.errors import InputError, listed, suggestion
from penstock.model.durations import duration_us
from penstock.model.engines import JoinWay, checked_join_way
from penstock.model.operators import JoinKind
from penstock.model.parts import DEFAULT_GROUPS, DEFAULT_PERIOD_US, JoinSpread, join_spread
from penstock.model.schema import Schema
from penstock.model.windows import TimeBound

Duration = str | int | float
Columns = str | Iterable[str | tuple[str, str]] | Mapping[str, str]
Pairs = tuple[tuple[str, str], ...]


def time_bound(
    within: Duration | None, before: Duration | None, after: Duration | None
) -> TimeBound:
    """How far apart joined rows may be.

    >>> print(time_bound(None, "5 min", None))
    right in left -5 minutes .. +0 seconds
    """
    if within is not None and (before is not None or after is not None):
        raise InputError(
            "a join with both within and before or after",
            hint="within sets both before and after; give it alone.",
        )
    if within is not None:
        return TimeBound(-signed_us(within), signed_us(within))
    if before is None and after is None:
        raise InputError(
            "a join without a time bound would keep all rows for ever",
            hint='Say how far apart the rows may be, for example within="5 min".',
        )
    return TimeBound(-signed_us(before or 0), signed_us(after or 0))


def signed_us(written: Duration) -> int:
    """Microseconds of a duration that may have a minus.

    >>> signed_us("-5 min"), signed_us(2)
    (-300000000, 2000000)
    """
    if isinstance(written, str) and written.strip().startswith("-"):
        return -duration_us(written.strip()[1:])
    return duration_us(written)


def check_kind(how: str) -> None:
    """Raises unless ``how`` is a kind of join."""
    kinds = get_args(JoinKind)
    if how not in kinds:
        raise InputError(f"no join {how}; there are {listed(kinds)}", hint=suggestion(how, kinds))


def column_pairs(written: Columns) -> Pairs:
    """Pairs of a column of ours and one of theirs.

    >>> column_pairs("home"), column_pairs({"home": "id"})
    ((('home', 'home'),), (('home', 'id'),))
    """
    if isinstance(written, str):
        return ((written, written),)
    if isinstance(written, Mapping):
        return tuple(written.items())
    return tuple((pair, pair) if isinstance(pair, str) else (pair[0], pair[1]) for pair in written)


def equal_columns(written: Columns, left: Schema, right: Schema) -> Pairs:
    """The compared columns as the schemas spell them; raises where there are none such."""
    return tuple((left[ours].name, right[theirs].name) for ours, theirs in column_pairs(written))


def names_apart(theirs: Schema, ours: Schema, prefix: str) -> dict[str, str]:
    """Names for their columns that none of ours has: those that clash get the prefix.

    These are the names that a join written in SQL gives.

    >>> names_apart(Schema.parse("home string, size int"), Schema.parse("home string"), "right_")
    {'home': 'right_home', 'size': 'size'}
    """
    names: dict[str, str] = {}
    taken = {name.lower() for name in (*ours.names, *theirs.names)}
    for name in theirs.names:
        names[name] = _fresh(f"{prefix}{name}", taken) if name in ours else name
        taken.add(names[name].lower())
    return names


def _fresh(wanted: str, taken: set[str]) -> str:
    name, count = wanted, 1
    while name.lower() in taken:
        count += 1
        name = f"{wanted}_{count}"
    return name


def added_columns(
    written: Columns | None, equal: Pairs, ours: Schema, table: Schema, prefix: str
) -> Pairs:
    """The columns a table adds: their new names, and what they are called there."""
    if isinstance(written, Mapping):
        return tuple((new, table[column].name) for new, column in written.items())
    if written is None:
        compared = {theirs for _, theirs in equal}
        names = [name for name in table.names if name not in compared]
    else:
        names = [table[name].name for name, _ in column_pairs(written)]
    new = names_apart(table, ours, prefix)
    return tuple((new[name], name) for name in names)


def joining(
    written: str | Mapping[str, str | int] | None,
) -> tuple[JoinWay | None, JoinSpread | None]:
    """How the streams behind a query are to be joined, and to how many parts."""
    if written is None:
        return None, None
    if isinstance(written, str):
        return checked_join_way(written), None
    unknown = [key for key in written if key not in ("spread", "groups", "moves", "every")]
    if unknown or "spread" not in written:
        raise InputError(
            f"a join is shared out by {dict(written)}",
            hint='Write join={"spread": "auto"}, or a number of parts, and "groups" if you like.',
        )
    groups = written.get("groups", DEFAULT_GROUPS)
    if not isinstance(groups, int):
        raise InputError(f"a join has {groups!r} groups", hint="Give a number.")
    moves = str(written.get("moves", "load"))
    period_us = duration_us(written["every"]) if "every" in written else DEFAULT_PERIOD_US
    return "partitioned", join_spread(str(written["spread"]), groups, moves, period_us)
