"""The functions a query may call: other names they go by, and those refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.errors import InputError, listed, suggestion
from penstock.model.aggregates import AGGREGATES
from penstock.model.expressions import Call, Expression, Literal
from penstock.model.functions import FUNCTIONS

WINDOWS = ("window", "session_window")

# Other names, as Spark and common databases have them.
_SAME: Mapping[str, str] = {
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "ifnull": "coalesce",
    "iff": "if",
    "lcase": "lower",
    "len": "length",
    "log": "ln",
    "mod": "%",
    "nvl": "coalesce",
    "pow": "power",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "signum": "sign",
    "substr": "substring",
    "ucase": "upper",
    "unix_timestamp": "unix_seconds",
}
_SAME_AGGREGATES: Mapping[str, str] = {
    "mean": "avg",
    "std": "stddev",
    "stddev_samp": "stddev",
    "var_samp": "variance",
}
_CLOCK = "Queries read the time of their rows only; use the event-time column."
_CHANCE = "A query must give the same result when it is run again."
_REFUSED: Mapping[str, str] = {
    "current_date": _CLOCK,
    "current_timestamp": _CLOCK,
    "now": _CLOCK,
    "rand": _CHANCE,
    "random": _CHANCE,
    "uuid": _CHANCE,
    "percentile": "There are min, max, avg and stddev.",
    "median": "There are min, max, avg and stddev.",
    "first": "Use min_by(value, time).",
    "last": "Use max_by(value, time).",
}

Arguments = tuple[Expression, ...]
_REWRITTEN: Mapping[str, Callable[[Arguments], Expression]] = {
    "isnull": lambda given: Call("is_null", given),
    "isnotnull": lambda given: Call("not", (Call("is_null", given),)),
    "left": lambda given: Call("substring", (given[0], Literal(1), *given[1:])),
}


def aggregate_name(name: str) -> str | None:
    """The aggregate called ``name``, or None if it is not one.

    >>> aggregate_name("MEAN")
    'avg'
    """
    folded = name.lower()
    known = _SAME_AGGREGATES.get(folded, folded)
    return known if known in AGGREGATES else None


def function_call(name: str, arguments: Arguments) -> Expression:
    """A call of the function called ``name``; raises with near names if there is none.

    >>> function_call("MOD", (Literal(5), Literal(2))).function
    '%'
    """
    folded = name.lower()
    if folded in _REWRITTEN and arguments:
        return _REWRITTEN[folded](arguments)
    known = _SAME.get(folded, folded)
    if known not in FUNCTIONS:
        raise _unknown(name)
    return Call(known, arguments)


def refused(name: str) -> InputError | None:
    """The error for a function that is left out on purpose, with the reason."""
    folded = name.lower()
    if folded not in _REFUSED:
        return None
    return InputError(f"the function {folded} is not supported", hint=_REFUSED[folded])


def _unknown(name: str) -> InputError:
    folded = name.lower()
    on_purpose = refused(name)
    if on_purpose:
        return on_purpose
    named = [one for one, function in FUNCTIONS.items() if not function.infix]
    callable_names = sorted({*named, *_SAME, *_REWRITTEN, *AGGREGATES})
    near = suggestion(folded, callable_names)
    hint = near or f"There are {listed([*sorted(named), *AGGREGATES])}."
    return InputError(f"no function {name}", hint=hint)
