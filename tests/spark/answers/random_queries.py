"""The two languages a random pipeline is written in."""

from __future__ import annotations

from answers.random_pipelines import (
    Enriched,
    Grouped,
    Paired,
    Part,
    Pipeline,
    Selected,
    United,
)


def penstock_query(pipeline: Pipeline) -> str:
    """The pipeline as a query on streams: WITH for each part, or one inside the other."""
    *before, last = pipeline.parts
    whole = _penstock(last)
    if pipeline.nested and before and whole.count(f"FROM {before[-1].name}\n") == 1:
        inner = before.pop()
        whole = whole.replace(
            f"FROM {inner.name}\n", f"FROM (\n{_penstock(inner)}\n) AS {inner.name}\n"
        )
    parts = ", ".join(f"{one.name} AS (\n{_penstock(one)}\n)" for one in before)
    return f"WITH {parts}\n{whole}" if parts else whole


def duck_query(pipeline: Pipeline) -> str:
    """The pipeline as a query on tables that hold the same rows."""
    *before, last = pipeline.parts
    parts = ", ".join(f"{one.name} AS MATERIALIZED (\n{_duck(one)}\n)" for one in before)
    whole = f"SELECT {', '.join(last.columns)} FROM (\n{_duck(last)}\n)"
    return f"WITH {parts}\n{whole}" if parts else whole


def _penstock(part: Part) -> str:
    match part:
        case Selected(source=source, where=where, given=given):
            items = ", ".join(f"{one.penstock()} AS {name}" for name, one in given.items())
            text = f"SELECT {items} FROM {source.name}\n"
            return text + (f"WHERE {where.penstock()}" if where else "")
        case United(columns=columns, branches=branches):
            names = ", ".join(columns)
            return " UNION ALL ".join(f"SELECT {names} FROM {branch.name}\n" for branch in branches)
        case Grouped():
            return _penstock_grouped(part)
        case Paired():
            return _penstock_paired(part)
        case Enriched(source=source, kind=kind):
            own = ", ".join(f"s.{column}" for column in source.columns)
            join = f"FROM {source.name} AS s {kind}JOIN labels ON s.k = labels.key"
            return f"SELECT {own}, labels.label, labels.weight {join}"
    raise TypeError(part)


def _penstock_grouped(part: Grouped) -> str:
    function = "session_window" if part.slide_us is None else "window"
    lengths = [part.size_us] if part.slide_us in (None, part.size_us) else None
    lengths = lengths or [part.size_us, part.slide_us or 0]
    end = "start" if part.by_start else "end"
    items = [f"{function}.{end} AS ts"]
    items += [f"{key.penstock()} AS {name}" for name, key in part.keys.items()]
    items += [
        f"{one.penstock.format(value.penstock() if value else '')} AS {name}"
        for name, (one, value) in part.aggregates.items()
    ]
    written = ", ".join(f"'{length} microseconds'" for length in lengths)
    group = [*(key.penstock() for key in part.keys.values()), f"{function}(ts, {written})"]
    text = f"SELECT {', '.join(items)} FROM {part.source.name}\nGROUP BY {', '.join(group)}"
    return text + (f" HAVING {part.having.penstock()}" if part.having else "")


def _penstock_paired(part: Paired) -> str:
    items = [f"{part.time_of}.ts AS ts"]
    for mark, side in (("l", part.left), ("r", part.right)):
        items += [
            f"{mark}.{column} AS {mark}_{column}" for column in side.columns if column != "ts"
        ]
    low, high = (_interval(one) for one in (part.lower_us, part.upper_us))
    bounds = (
        f"r.ts BETWEEN l.ts + {low} AND l.ts + {high}",
        f"r.ts > l.ts + {low} AND r.ts <= l.ts + {high}",
        f"r.ts - l.ts >= {low} AND r.ts - l.ts < {high}",
        f"l.ts <= r.ts - {low} AND l.ts + {high} >= r.ts",
    )
    on = [f"l.{key} = r.{key}" for key in part.keys]
    on.append("r.ts = l.ts" if part.lower_us == part.upper_us else bounds[part.form])
    on += [part.also] if part.also else []
    join = f"{part.left.name} AS l {part.kind}JOIN {part.right.name} AS r ON {' AND '.join(on)}"
    return f"SELECT {', '.join(items)} FROM {join}"


def _interval(us: int) -> str:
    return f"INTERVAL '{us // 1000}' MILLISECONDS"


def _duck(part: Part) -> str:
    match part:
        case Selected(source=source, where=where, given=given):
            items = ", ".join(f"{one.duck()} AS {name}" for name, one in given.items())
            return f"SELECT {items} FROM {source.name}" + (
                f" WHERE {where.duck()}" if where else ""
            )
        case United(columns=columns, branches=branches):
            names = ", ".join(columns)
            return " UNION ALL ".join(f"(SELECT {names} FROM {branch.name})" for branch in branches)
        case Grouped():
            return _duck_grouped(part)
        case Paired():
            return _duck_paired(part)
        case Enriched(source=source, kind=kind):
            own = ", ".join(f"s.{column}" for column in source.columns)
            return (
                f"SELECT {own}, label, weight FROM {source.name} s {kind}JOIN labels ON key = s.k"
            )
    raise TypeError(part)


def _duck_grouped(part: Grouped) -> str:
    keys = [f"{key.duck()} AS {name}" for name, key in part.keys.items()]
    calls = [
        f"{(one.duck or one.penstock).format(value.duck() if value else '')} AS {name}"
        for name, (one, value) in part.aggregates.items()
    ]
    if part.slide_us is None:
        groups = _sessions(part, keys)
        time = f"max(ts) + to_microseconds({part.size_us})"
    else:
        shift = 0 if part.by_start else part.size_us
        time = f"make_timestamp(any_value(number_) * {part.slide_us} + {shift})"
        groups = _windows(part, keys, part.slide_us)
    grouped = ", ".join([*part.keys, "number_"])
    items = ", ".join([*part.keys, f"{time} AS time_", *calls])
    # The aggregates read ts as the rows have it, so the window's own time is renamed last.
    whole = f"SELECT {items} FROM ({groups}) GROUP BY {grouped}"
    named = ", ".join(["time_ AS ts", *part.keys, *part.aggregates])
    where = f" WHERE {part.having.duck()}" if part.having else ""
    return f"SELECT {named} FROM ({whole}){where}"


def _windows(part: Grouped, keys: list[str], slide_us: int) -> str:
    """Every row once for each window it falls into, with the window's number."""
    first = f"floor_div(epoch_us(ts) - {part.size_us}, {slide_us}) + 1"
    last = f"floor_div(epoch_us(ts), {slide_us})"
    items = ", ".join(["*", *keys, f"unnest(range({first}, {last} + 1)) AS number_"])
    return f"SELECT {items} FROM {part.source.name}"


def _sessions(part: Grouped, keys: list[str]) -> str:
    """Every row with the number of its session among those of its keys."""
    by = f"(PARTITION BY {', '.join(part.keys)} ORDER BY ts)" if part.keys else "(ORDER BY ts)"
    keyed = f"SELECT {', '.join(['*', *keys])} FROM {part.source.name}"
    near = f"ts - lag(ts) OVER {by} <= to_microseconds({part.size_us})"
    marked = f"SELECT *, CASE WHEN {near} THEN 0 ELSE 1 END AS first_ FROM ({keyed})"
    return f"SELECT *, sum(first_) OVER {by} AS number_ FROM ({marked})"


def _duck_paired(part: Paired) -> str:
    items = [f"{part.time_of}.ts AS ts"]
    for mark, side in (("l", part.left), ("r", part.right)):
        items += [
            f"{mark}.{column} AS {mark}_{column}" for column in side.columns if column != "ts"
        ]
    lower = part.lower_us + (part.form == 1)
    upper = part.upper_us - (part.form == 2)
    on = [f"epoch_us(r.ts) - epoch_us(l.ts) BETWEEN {lower} AND {upper}"]
    on += [f"l.{key} = r.{key}" for key in part.keys]
    on += [part.also] if part.also else []
    join = f"{part.left.name} l {part.kind}JOIN {part.right.name} r ON {' AND '.join(on)}"
    return f"SELECT {', '.join(items)} FROM {join}"
