"""The functions a query may call: other names they go by, and those refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot.parsers.spark import SparkParser

from penstock.errors import InputError, listed, suggestion
from penstock.model.aggregates import AGGREGATES
from penstock.model.expressions import Call, Cast, Expression, Literal
from penstock.model.functions import FUNCTIONS
from penstock.model.types import STORABLE, DataType

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

_BETWEEN = "Write unix_seconds(one) - unix_seconds(other), or unix_micros for microseconds."
_LATER = "Write time + INTERVAL 3 DAYS."
_TRIMMED = "There is trim, for both ends."
_FOUND = "There are contains, startswith, endswith and regexp_extract."
_OVER = "Group by window(time, 'size') in a subquery and join with its result."
_FIRST = "Use min_by(value, time) or max_by(value, time)."
_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff", "timediff", "age"), _BETWEEN),
    **dict.fromkeys(("date_add", "dateadd", "date_sub", "timestampadd", "adddate"), _LATER),
    **dict.fromkeys(("ltrim", "rtrim", "btrim"), _TRIMMED),
    **dict.fromkeys(("instr", "position", "locate", "charindex", "strpos"), _FOUND),
    **dict.fromkeys(("lag", "lead", "row_number", "rank", "dense_rank", "ntile"), _OVER),
    **dict.fromkeys(("first_value", "last_value", "any_value", "arbitrary"), _FIRST),
    **dict.fromkeys(("strftime", "to_char"), "Use date_format(time, 'yyyy-MM-dd')."),
    **dict.fromkeys(("strptime", "parse_timestamp"), "Use to_timestamp(text, 'pattern')."),
    **dict.fromkeys(("from_unixtime", "to_epoch"), "Use timestamp_seconds(number)."),
    **dict.fromkeys(("to_unix_timestamp", "epoch"), "Use unix_seconds(time)."),
    **dict.fromkeys(("epoch_ms", "from_unix_millis"), "Use timestamp_millis(number)."),
    **dict.fromkeys(("date_part", "datepart"), "Write extract(hour FROM time), or hour(time)."),
    **dict.fromkeys(("countif", "sum_if", "sumif"), "Write count_if(…), or sum(if(…, value, 0))."),
    **dict.fromkeys(("approx_percentile", "quantile"), "There are min, max, avg and stddev."),
    **{str(data_type): f"Write CAST(… AS {data_type})." for data_type in STORABLE},
    "concat_ws": "Use concat(one, ',', other).",
    "nvl2": "Write if(one IS NOT NULL, two, three).",
    "right": "Write substring(text, -length).",
    "trunc": "Use date_trunc for times, and floor or round for numbers.",
    "count_distinct": "Use approx_count_distinct(value).",
}
"""What does the same as functions that other systems have."""

Arguments = tuple[Expression, ...]
_REWRITTEN: Mapping[str, Callable[[Arguments], Expression]] = {
    "isnull": lambda given: Call("is_null", given),
    "isnotnull": lambda given: Call("not", (Call("is_null", given),)),
    "left": lambda given: Call("substring", (given[0], Literal(1), *given[1:])),
    "to_timestamp": lambda given: _to_timestamp(given),
}


def aggregate_name(name: str) -> str | None:
    """The aggregate called ``name``, or None if it is not one.

    >>> aggregate_name("MEAN")
    'avg'
    """
    folded = name.lower()
    known = _SAME_AGGREGATES.get(folded, folded)
    return known if known in AGGREGATES else None


def _to_timestamp(given: Arguments) -> Expression:
    if len(given) == 1:
        return Cast(given[0], DataType.TIMESTAMP)
    return Call("to_timestamp", given)


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
    named = [name for name, function in FUNCTIONS.items() if not function.infix]
    callable_names = sorted({*named, *_SAME, *_REWRITTEN, *AGGREGATES})
    # What is a function elsewhere is not mistyped: one with a similar name does something else.
    is_mistyped = folded.upper() not in SparkParser.FUNCTIONS
    near = suggestion(folded, callable_names, likeness=0.75) if is_mistyped else ""
    hint = _INSTEAD.get(folded) or near or f"There are {listed([*sorted(named), *AGGREGATES])}."
    return InputError(f"no function {name}", hint=hint)
