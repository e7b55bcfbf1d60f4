"""A window join on a cluster of a master and workers, in simulated time (figures 5 to 14).

Chakraborty and Singh, *Parallelizing Windowed Stream Joins in a Shared-Nothing Cluster* (2013).
"""

from __future__ import annotations

from itertools import pairwise

from penstock.studies.figures import Figure
from penstock.studies.placement_runs import numbers
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    gathered,
    near,
    records,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.window_join_runs import (
    BALANCING,
    PLAIN,
    TUNED,
    balancing_points,
    buffer_points,
    epoch_points,
    measure,
    rate_points,
    worker_points,
)

_RATES, _WORKERS, _EPOCHS = "window-join-rates", "window-join-workers", "window-join-epochs"
_BUFFER, _BALANCE = "window-join-buffer", "window-join-balance"
_SLOW_S = 5.0
"""A mean delay above this counts as overloaded."""


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Delay, processor, communication and memory of the join as its source measured them."""
    parts = {
        _RATES: rate_points(quick),
        _WORKERS: worker_points(quick),
        _EPOCHS: epoch_points(quick),
        _BUFFER: buffer_points(quick),
        _BALANCE: balancing_points(quick),
    }
    points = [point for part in parts.values() for point in part]
    found = dict(zip(points, run(measure, points, say), strict=True))
    tables = {name: records(name, [found[point] for point in part]) for name, part in parts.items()}
    tables |= {table.name: table for table in _derived(tables)}
    setup = (
        "Two streams with Poisson arrivals of 64-byte tuples, keys of the b-model, b = 0.7, from "
        "0 to 10,000,000, windows of 10 minutes, 60 groups; 20 minutes of which the last 10 are "
        "measured. 11.2 ns a comparison, 55 µs a tuple, 9 µs a result, 2 ms a message, 0.1 s a MB."
    )
    rows = (*_rate_rows(tables), *_worker_rows(tables), *_epoch_rows(tables), *_own_rows(tables))
    return StudyReport("window-join", rows, tuple(tables.values()), _figures(), setup)


def at(table: ResultTable, column: str, **wanted: Value) -> float:
    """The one value of a column where others have these values."""
    (value,) = table.where(**wanted).column(column)
    assert isinstance(value, int | float)
    return float(value)


def saturation_per_s(table: ResultTable, workers: int, tuning: str) -> float:
    """The rate at which delays become long: between the last that is fine and the next.

    >>> rows = ((1000, 4, "tuned", 1.0), (2000, 4, "tuned", 2.0), (3000, 4, "tuned", 90.0))
    >>> table = ResultTable("t", ("rate_per_s", "workers", "tuning", "delay_s"), rows)
    >>> saturation_per_s(table, 4, "tuned")
    2500.0
    """
    chosen = table.where(workers=workers, tuning=tuning)
    rates, found = (numbers(chosen.column(name)) for name in ("rate_per_s", "delay_s"))
    delays = sorted(zip(rates, found, strict=True))
    slow = [at for at, (_, delay) in enumerate(delays) if delay > _SLOW_S]
    if not slow:
        return float(delays[-1][0])
    return (delays[slow[0]][0] + delays[max(0, slow[0] - 1)][0]) / 2


def _rate_rows(tables: dict[str, ResultTable]) -> list[Row]:
    table = tables[_RATES]
    plain: dict[str, Value] = {"workers": 4, "tuning": PLAIN}
    tuned: dict[str, Value] = {"workers": 4, "tuning": TUNED}
    counts = sorted({int(number) for number in numbers(table.column("workers"))})
    limits = [saturation_per_s(table, count, TUNED) for count in counts]
    steps = [later - earlier for earlier, later in pairwise(limits)]
    hardly_s = 0.05 * 600
    communication = [
        at(table, "communication_s", rate_per_s=3_500, **setting) for setting in (tuned, plain)
    ]
    spread = [
        at(table, "most_communication_s", rate_per_s=rate, **tuned)
        - at(table, "least_communication_s", rate_per_s=rate, **tuned)
        for rate in (1_500, 6_000)
    ]
    return [
        near("untuned, 4,000/s: delay in s (fig. 8)", 48,
             at(table, "delay_s", rate_per_s=4_000, **plain), 12),
        near("tuned, 4,000/s: delay in s (fig. 6)", 2,
             at(table, "delay_s", rate_per_s=4_000, **tuned), 0.5),
        near("untuned: saturation, tuples/s (fig. 8)", 4_000,
             saturation_per_s(table, 4, PLAIN), 500),
        near("tuned: saturation, tuples/s (fig. 6)", 6_000,
             saturation_per_s(table, 4, TUNED), 500),
        within("least gain in saturation by one more worker, tuples/s (figs. 5, 6)", None,
               min(steps), low=1.0, note="more workers move the point of saturation up"),
        within("untuned over tuned CPU at 3,500/s (fig. 7)", None,
               at(table, "cpu_s", rate_per_s=3_500, **plain)
               / at(table, "cpu_s", rate_per_s=3_500, **tuned), low=1.2,
               note="tuning significantly lowers it"),
        within("untuned, 4,000/s: idle s of 600 (fig. 9)", 0,
               at(table, "idle_s", rate_per_s=4_000, **plain), high=hardly_s),
        within("tuned, 6,000/s: idle s of 600 (fig. 10)", 0,
               at(table, "idle_s", rate_per_s=6_000, **tuned), high=hardly_s),
        within("tuned over untuned communication at 3,500/s (figs. 9, 10)", 1,
               communication[0] / communication[1], 0.95, 1.05,
               note="tuning costs no communication"),
        within("most less least communication, 6,000/s over 1,500/s (fig. 12)", None,
               spread[1] / spread[0], low=2.0, note="diverges as the rate grows"),
    ]  # fmt: skip


def _worker_rows(tables: dict[str, ResultTable]) -> list[Row]:
    table = tables[_WORKERS].where(adaptive=0)
    counts = numbers(table.column("workers"))
    sums = numbers(table.column("all_communication_s"))
    first, last = int(min(counts)), int(max(counts))
    mean = [at(table, "communication_s", workers=workers) for workers in (first, last)]
    adaptive = at(tables[_WORKERS], "all_communication_s", adaptive=1)
    return [
        within(f"mean communication, {last} workers over {first} (fig. 11)", None,
               mean[1] / mean[0], high=1.0, note="falls with the number of workers"),
        within("sum of communication: how linear in workers, R² (fig. 11)", None,
               _r_squared(counts, sums), low=0.95, note="rises linearly"),
        within(f"adaptive sum over that of {last} workers at 1,500/s (fig. 11)", None,
               adaptive / at(table, "all_communication_s", workers=last), high=0.8,
               note="significantly lower"),
    ]  # fmt: skip


def _r_squared(xs: list[float], ys: list[float]) -> float:
    import numpy as np

    return float(np.corrcoef(xs, ys)[0, 1] ** 2)


def _epoch_rows(tables: dict[str, ResultTable]) -> list[Row]:
    table, buffer = tables[_EPOCHS], tables[_BUFFER]
    epochs = sorted(numbers(table.column("distribution_s")))
    short, long = epochs[0], epochs[-1]
    ratio = {
        column: at(table, column, distribution_s=short) / at(table, column, distribution_s=long)
        for column in ("delay_s", "communication_s")
    }
    rows = [
        within(f"delay, epochs of {short:g} s over {long:g} s (fig. 13)", None, ratio["delay_s"],
               high=0.9, note="falls with the epoch"),
        within(f"communication, epochs of {short:g} s over {long:g} s (fig. 14)", None,
               ratio["communication_s"], low=1.1, note="rises as the epoch falls"),
    ]  # fmt: skip
    for slots in sorted({int(number) for number in numbers(buffer.column("slots"))}):
        peak = at(buffer, "waiting", slots=slots) / at(buffer, "predicted", slots=slots)
        rows.append(
            within(f"peak of the master's buffer over (r t/2)(1 + 1/{slots})", 1, peak, 0.95, 1.1)
        )
    return rows


def _own_rows(tables: dict[str, ResultTable]) -> list[Row]:
    """What the source does not measure: its groups are too equal for moves to matter."""
    table = tables[_BALANCE]
    rows = []
    for trouble in dict.fromkeys(table.column("trouble")):
        never, random, load = (
            at(table, "delay_s", trouble=trouble, moves=moves) for moves in BALANCING
        )
        rows += [
            within(f"{trouble}: delay with moves by load over none", None, load / never, high=0.5,
                   note="not in the source"),
            within(f"{trouble}: delay with moves by load over at random", None, load / random,
                   high=1.1, note="not in the source"),
        ]  # fmt: skip
    return rows


def _derived(tables: dict[str, ResultTable]) -> list[ResultTable]:
    """Tables in the form that figures need: a value a row, named by what it is."""
    rates = tables[_RATES].where(workers=4)
    tuned = rates.where(tuning=TUNED)
    workers = tables[_WORKERS]
    adaptive = at(workers, "all_communication_s", adaptive=1)
    fixed = workers.where(adaptive=0)
    named = [
        ResultTable("window-join-four-workers", rates.columns, rates.rows),
        ResultTable("window-join-tuned-rates", rates.columns, _by_workers(tables[_RATES])),
        _long("window-join-shares-tuned", tuned, "rate_per_s",
              {"idle": "idle_s", "communication": "communication_s"}),
        _long("window-join-shares-plain", rates.where(tuning=PLAIN), "rate_per_s",
              {"idle": "idle_s", "communication": "communication_s"}),
        _long("window-join-communication", tuned, "rate_per_s",
              {"least": "least_communication_s", "mean": "communication_s",
               "most": "most_communication_s"}),
        _long("window-join-peak", tables[_BUFFER], "slots",
              {"measured": "waiting", "(r t/2)(1 + 1/n)": "predicted"}),
    ]  # fmt: skip
    sums = _long("window-join-sums", fixed, "workers",
                 {"mean": "communication_s", "sum": "all_communication_s"})  # fmt: skip
    extra = tuple((workers, "sum, adaptive", adaptive) for workers in fixed.column("workers"))
    return [*named, ResultTable(sums.name, sums.columns, (*sums.rows, *extra))]


def _by_workers(table: ResultTable) -> tuple[tuple[Value, ...], ...]:
    tuned = table.where(tuning=TUNED)
    counts = dict.fromkeys(sorted(numbers(tuned.column("workers"))))
    return tuple(row for count in counts for row in tuned.where(workers=count).rows)


def _long(name: str, table: ResultTable, x: str, columns: dict[str, str]) -> ResultTable:
    return gathered(
        name,
        [
            [
                {x: position, "what": what, "value": value}
                for position, value in zip(table.column(x), table.column(column), strict=True)
            ]
            for what, column in columns.items()
        ],
    )


def _figures() -> tuple[Figure, ...]:
    rate, seconds = "tuples a second and stream", "seconds of 600"
    return (
        Figure("delay-by-workers", "window-join-tuned-rates", "rate_per_s", "delay_s",
               by="workers", log_y=True, title="Delay against rate (figs. 5, 6)", x_label=rate,
               y_label="mean production delay in s"),
        Figure("cpu", "window-join-four-workers", "rate_per_s", "cpu_s", by="tuning",
               title="Processor time a worker (fig. 7)", x_label=rate, y_label=seconds),
        Figure("delay-by-tuning", "window-join-four-workers", "rate_per_s", "delay_s", by="tuning",
               log_y=True, title="Delay with and without tuning, 4 workers (fig. 8)", x_label=rate,
               y_label="mean production delay in s"),
        Figure("idle-plain", "window-join-shares-plain", "rate_per_s", "value", by="what",
               title="Idle time and communication, untuned (fig. 9)", x_label=rate,
               y_label=seconds),
        Figure("idle-tuned", "window-join-shares-tuned", "rate_per_s", "value", by="what",
               title="Idle time and communication, tuned (fig. 10)", x_label=rate,
               y_label=seconds),
        Figure("communication-by-workers", "window-join-sums", "workers", "value", by="what",
               title="Communication at 1,500 tuples/s (fig. 11)", x_label="workers",
               y_label=seconds),
        Figure("communication-by-rate", "window-join-communication", "rate_per_s", "value",
               by="what", title="Communication of four workers (fig. 12)", x_label=rate,
               y_label=seconds),
        Figure("delay-by-epoch", _EPOCHS, "distribution_s", "delay_s",
               title="Delay against the epoch, 3 workers (fig. 13)",
               x_label="distribution epoch in s", y_label="mean production delay in s"),
        Figure("communication-by-epoch", _EPOCHS, "distribution_s", "communication_s",
               title="Communication against the epoch, 3 workers (fig. 14)",
               x_label="distribution epoch in s", y_label=seconds),
        Figure("largest-window", "window-join-tuned-rates", "rate_per_s", "window_mb",
               by="workers", title="The most that a worker held", x_label=rate, y_label="MB"),
        Figure("buffer-peak", "window-join-peak", "slots", "value", by="what",
               title="Peak of the master's buffer", x_label="sub-groups", y_label="tuples"),
        Figure("balance", "window-join-balance", "case", "delay_s", kind="dots",
               title="A slow worker, a hot key: groups move or not", x_label="trouble, moves",
               y_label="mean production delay in s"),
    )  # fmt: skip
