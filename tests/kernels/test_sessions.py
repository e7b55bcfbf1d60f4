"""Sessions against a plain transcription of the manual, whatever the batches and watermarks are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.feeds.arrow import arrow_schema
from penstock.kernels import session_state
from penstock.kernels.aggregates import kind_of
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.member_state import open_state
from penstock.kernels.partials import compute_partials
from penstock.kernels.session_state import SessionState, _SessionRun
from penstock.kernels.state_shape import END, MEMBER, START, StateShape
from penstock.kernels.window_join.hashing import Bits, hash_keys
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.kernels.window_results import give_results
from penstock.kernels.window_state import LONG_AGO_US, MemberTime, MemberWindows
from penstock.lang.deployment import parse_deployment
from penstock.model.types import DataType
from penstock.model.windows import SessionWindow
from penstock.place.fuse import fuse

pytestmark = pytest.mark.core

Row = dict[str, object]
Results = dict[str, Counter[str]]
Tell = Callable[[list[Row]], list[object] | None]

STREAM = """
streams:
  s:
    source: {directory: in, format: csv}
    schema: ts timestamp, k string, g int, v bigint, x double
    event_time: ts
    lateness: 0s
queries:
"""
SELECT = "session_window.start AS since, session_window.end AS until"
NUMBERS = "count(*) AS n, sum(x) AS total, max(v) AS most"
QUERIES = {
    "by_text": f"""
        SELECT k, {SELECT}, {NUMBERS} FROM s GROUP BY k, session_window(ts, '5 seconds')""",
    "with_longer_gaps": f"""
        SELECT k, {SELECT}, {NUMBERS} FROM s GROUP BY k, session_window(ts, '9 seconds')""",
    "by_numbers": f"""
        SELECT x, g, {SELECT}, count(v) AS n, sum(v) AS total, avg(x) AS mean, stddev(x) AS spread
        FROM s GROUP BY x, g, session_window(ts, '5 seconds')""",
    "together": f"""
        SELECT {SELECT}, min(x) AS least, max(k) AS last, min_by(k, v) AS low,
               max_by(x, v) AS high, count_if(v > 2) AS large, variance(v) AS spread
        FROM s GROUP BY session_window(ts, '2 seconds')""",
    "some": f"""
        SELECT g, {SELECT}, avg(v) AS mean FROM s WHERE v > 1 OR v IS NULL
        GROUP BY g, session_window(ts, '5 seconds') HAVING count(*) > 1""",
}
# The keys, which rows count, and what is told of each session.
PLAIN: dict[str, tuple[str, Callable[[Row], bool], Tell]] = {}


def plainly(
    name: str, keys: str, counts: Callable[[Row], bool] = lambda row: True
) -> Callable[[Tell], Tell]:
    def note(tell: Tell) -> Tell:
        PLAIN[name] = (keys, counts, tell)
        return tell

    return note


def known(rows: list[Row], column: str) -> list:
    return [row[column] for row in rows if row[column] is not None]


def exact(values: list) -> Fraction | float | None:
    """The sum: None of nothing; what is not a number counts as Python adds it."""
    if not all(map(math.isfinite, values)):
        return sum(values)
    return sum(map(Fraction, values), Fraction()) if values else None


def rounded(value: Fraction | float | None) -> float | None:
    return None if value is None else float(value)


def variance(values: list) -> float | None:
    values = list(map(float, values))
    if len(values) < 2:
        return None
    total = exact(values)
    if isinstance(total, float):
        return math.nan
    squares = sum(Fraction(value) ** 2 for value in values)
    return float((squares - total**2 / len(values)) / (len(values) - 1))


def order(value: float | int) -> tuple[bool, float | int, float]:
    """NaN is the greatest, and -0.0 comes before 0.0."""
    is_nan = math.isnan(value)
    return is_nan, 0 if is_nan else value, math.copysign(1.0, value) if value == 0 else 0.0


def chosen(rows: list[Row], column: str, best: Callable) -> object:
    """The least value, null last, among the rows with the best v."""
    most = best(known(rows, "v"), default=None)
    tied = [row for row in rows if row["v"] is not None and row["v"] == most]
    by = order if column == "x" else str.encode
    return min(known(tied, column), key=by, default=None)


@plainly("by_text", "k")
@plainly("with_longer_gaps", "k")
def _(rows: list[Row]) -> list[object]:
    return [len(rows), rounded(exact(known(rows, "x"))), max(known(rows, "v"), default=None)]


@plainly("by_numbers", "xg")
def _(rows: list[Row]) -> list[object]:
    values, doubles = known(rows, "v"), known(rows, "x")
    total = exact(doubles)
    spread = variance(doubles)
    return [
        len(values),
        sum(values) if values else None,
        None if total is None else rounded(total / len(doubles)),
        None if spread is None else math.sqrt(spread),
    ]


@plainly("together", "")
def _(rows: list[Row]) -> list[object]:
    return [
        min(known(rows, "x"), key=order, default=None),
        max(known(rows, "k"), default=None),
        chosen(rows, "k", min),
        chosen(rows, "x", max),
        sum(value > 2 for value in known(rows, "v")),
        variance(known(rows, "v")),
    ]


@plainly("some", "g", lambda row: row["v"] is None or row["v"] > 1)
def _(rows: list[Row]) -> list[object] | None:
    total = exact(known(rows, "v"))
    mean = None if total is None else rounded(total / len(known(rows, "v")))
    return [mean] if len(rows) > 1 else None


@cache
def plans() -> dict[int, WindowPlan]:
    lines = (f'  {name}: "{" ".join(sql.split())}"\n' for name, sql in QUERIES.items())
    text = STREAM + "".join(lines)
    network = parse_deployment(text, "s.yaml", Path()).network
    found = {}
    for number, fragment in enumerate(fuse(network)):
        plan = plan_windows(fragment)
        assert isinstance(plan, WindowPlan), plan
        found[number] = plan
    return found


def sessions_of(rows: list[Row], gap_us: int) -> Iterator[list[Row]]:
    """Rows of one key in sessions: one goes on with a row up to the gap after its last."""
    session: list[Row] = []
    for row in sorted(rows, key=lambda row: row["ts"]):
        if session and row["ts"] - session[-1]["ts"] > gap_us:
            yield session
            session = []
        session.append(row)
    if session:
        yield session


def same_key(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def as_the_manual_says(rows: list[Row]) -> Results:
    found: Results = {}
    for plan in plans().values():
        keys, counts, tell = PLAIN[plan.name]
        assert isinstance(plan.window, SessionWindow)
        groups: dict[tuple, list[Row]] = {}
        for row in filter(counts, rows):
            groups.setdefault(tuple(same_key(row[key]) for key in keys), []).append(row)
        found[plan.name] = Counter()
        for key, group in groups.items():
            for session in sessions_of(group, plan.window.gap_us):
                told = tell(session)
                since, until = session[0]["ts"], session[-1]["ts"] + plan.window.gap_us
                if told is not None:
                    found[plan.name][written([*key, since, until, *told])] += 1
    return found


def written(values: list[object]) -> str:
    return repr(["nan" if value != value or value == "NaN" else value for value in values])


@dataclass
class Members:
    """Members in one state each shape, and a log from which it can be rebuilt."""

    log: dict[StateShape, list[pa.Table]] = field(default_factory=dict)
    states: dict[StateShape, SessionState] = field(default_factory=dict)
    reached_us: dict[int, int] = field(default_factory=lambda: dict.fromkeys(plans(), LONG_AGO_US))
    results: Results = field(
        default_factory=lambda: {plan.name: Counter() for plan in plans().values()}
    )

    def take(self, rows: list[Row]) -> None:
        schema = next(iter(plans().values())).schema
        columns = {name: [row[name] for row in rows] for name in schema.names}
        table = pa.table(columns, schema=arrow_schema(schema))
        for shape, partials in compute_partials(BatchRows(table, schema), plans()).items():
            self.log.setdefault(shape, []).append(partials)
            self.states.setdefault(shape, open_state(shape)).add(partials)

    def reach(self, times_us: dict[int, int]) -> None:
        members = {
            number: MemberTime(plan.window, self.reached_us[number], times_us[number])
            for number, plan in plans().items()
        }
        windows = MemberWindows.of(members, len(members))
        for shape, state in self.states.items():
            closed = state.close(windows)
            if closed is not None:
                self._note(shape, closed)
        self.reached_us = times_us

    def _note(self, shape: StateShape, closed: pa.Table) -> None:
        for number, rows in give_results(shape, closed, plans()):
            # As numbers: a session of the last seconds of 9999 ends in a year that Python lacks.
            for name in ("since", "until"):
                at = rows.schema.get_field_index(name)
                rows = rows.set_column(at, name, rows.column(name).cast(pa.int64()))
            told = (written(list(row.values())) for row in rows.to_pylist())
            self.results[plans()[number].name].update(told)

    def snapshot(self) -> None:
        dumps = {shape: state.dump() for shape, state in self.states.items()}
        self.log = {shape: [table] for shape, table in dumps.items() if table is not None}

    def rebuild(self) -> None:
        self.states = {shape: open_state(shape) for shape in self.log}
        for shape, tables in self.log.items():
            for table in tables:
                self.states[shape].add(table)


TIMES_US = st.integers(0, 12).map(lambda at: at * 2_500_000) | st.integers(0, 30_000_000)
DOUBLES = st.sampled_from([None, 0.0, -0.0, 0.1, 1e300, -1e300, 1e-300, math.nan])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": TIMES_US,
            "k": st.sampled_from([None, "", "a", "é"]),
            "g": st.sampled_from([None, 0, 7]),
            "v": st.sampled_from([None, 0, 1, 2, 3, 2**53 + 1]),
            "x": DOUBLES,
        }
    ),
    max_size=30,
)
AGES_US = st.sampled_from([-62_135_596_800_000_000, -15_000_000, 253_402_300_769_999_999])
STEPS = st.lists(st.sampled_from(["cut", "wait", "snapshot", "rebuild"]), max_size=8)


def few_hashes(columns: list[pa.Array], rows: int) -> tuple[Bits, None]:
    return hash_keys(columns, rows)[0] % np.uint64(2), None


@pytest.mark.parametrize("hashes", [hash_keys, few_hashes])
@given(ROWS, AGES_US, STEPS, st.data())
def test_sessions_are_those_of_the_manual(
    hashes: Callable, rows: list[Row], age_us: int, steps: list[str], data: st.DataObject
) -> None:
    rows = sorted(rows, key=lambda row: row["ts"])
    rows = [{**row, "ts": age_us + row["ts"]} for row in rows]
    # Somewhat out of order, so that rows come between others and join their sessions.
    for at in data.draw(st.lists(st.integers(0, max(0, len(rows) - 6)), max_size=6)):
        rows[at : at + 6] = data.draw(st.permutations(rows[at : at + 6]))
    with patch.object(session_state, "hash_keys", hashes):
        assert as_computed(rows, steps, data) == as_the_manual_says(rows)


def as_computed(rows: list[Row], steps: list[str], data: st.DataObject) -> Results:
    members, left = Members(), rows
    for step in steps:
        if step == "cut":
            count = data.draw(st.integers(0, len(left)))
            taken, left = left[:count], left[count:]
            members.take(taken)
        elif step == "wait":
            # None of the others is late then; one of them may lie at the watermark itself.
            highest_us = min((row["ts"] for row in left), default=2**62)
            late_us = st.sampled_from([0, 0, 1, 5_000_000])
            before_us = members.reached_us
            members.reach(
                {at: max(now, highest_us - data.draw(late_us)) for at, now in before_us.items()}
            )
        elif step == "snapshot":
            members.snapshot()
        else:
            members.rebuild()
    members.take(left)
    members.reach(dict.fromkeys(plans(), 2**62))
    assert all(state.rows == 0 for state in members.states.values())
    return members.results


SHAPE = StateShape((DataType.STRING,), (kind_of("count", []),), sessions=True)


def stretches(*known: tuple[int, str, int, int]) -> pa.Table:
    """Partial aggregates of one row each: member, key, start and end."""
    members, keys, starts, ends = zip(*known, strict=True)
    columns = {MEMBER: pa.array(members, pa.int32()), START: starts, END: ends, "key_0": keys}
    return pa.table({**columns, "state_0_0": [1] * len(known)})


def came_to(before_us: int, after_us: int, *gone: int) -> MemberWindows:
    """The time of two members with gaps of ten microseconds."""
    times = {at: MemberTime(SessionWindow(10), before_us, after_us) for at in (0, 1)}
    return MemberWindows.of({at: time for at, time in times.items() if at not in gone}, 2)


def found(closed: pa.Table | None) -> list[tuple]:
    rows = [] if closed is None else closed.to_pylist()
    return [(row[MEMBER], row["key_0"], row[START], row[END], row["state_0_0"]) for row in rows]


def test_a_session_ends_once_no_row_can_go_on_with_it() -> None:
    state = SessionState(SHAPE)
    state.add(stretches((0, "a", 0, 10), (0, "b", 5, 15), (0, "c", 0, 10)))
    assert state.close(came_to(LONG_AGO_US, 10)) is None
    state.add(stretches((0, "a", 10, 20), (1, "a", 10, 20)))
    assert found(state.close(came_to(10, 16))) == [(0, "c", 0, 10, 1), (0, "b", 5, 15, 1)]
    state.add(stretches((0, "a", 21, 31)))
    ended = [(0, "a", 0, 20, 2), (1, "a", 10, 20, 1), (0, "a", 21, 31, 1)]
    assert found(state.close(came_to(16, 32))) == ended
    assert state.rows == 0


def test_a_row_joins_what_lay_apart() -> None:
    state = SessionState(SHAPE)
    for at in (40, 0, 21):
        state.add(stretches((0, "a", at, at + 10)))
    assert state.rows == 3
    state.add(stretches((0, "a", 11, 21), (0, "a", 30, 40), (0, "a", 3, 13)))
    assert found(state.dump()) == [(0, "a", 0, 50, 6)]
    state.add(stretches((0, "a", 3, 13), (0, "a", 20, 30)))
    assert found(state.dump()) == [(0, "a", 0, 50, 8)]


def test_what_was_taken_out_of_a_run_counts_once() -> None:
    state = SessionState(SHAPE)
    state.add(stretches(*((0, f"k{at}", 0, 10) for at in range(8))))
    for at in (1, 2):
        state.add(stretches((0, "k3", at, at + 10)))
    ended = found(state.close(came_to(LONG_AGO_US, 100)))
    assert len(ended) == 8
    assert ended[-1] == (0, "k3", 0, 12, 3)


def test_keys_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def same_hash(columns: list[pa.Array], rows: int) -> tuple[Bits, None]:
        return np.zeros(rows, np.uint64), None

    monkeypatch.setattr(session_state, "hash_keys", same_hash)
    state = SessionState(SHAPE)
    state.add(stretches((0, "a", 0, 100), (0, "b", 50, 60)))
    state.add(stretches((0, "a", 90, 110)))
    ended = [(0, "b", 50, 60, 1), (0, "a", 0, 110, 2)]
    assert found(state.close(came_to(LONG_AGO_US, 200))) == ended


def test_what_ended_before_is_not_given_again_and_nothing_is_kept_of_who_left() -> None:
    state = SessionState(SHAPE)
    state.add(stretches((0, "a", 0, 10), (0, "a", 30, 40), (1, "a", 30, 40)))
    counts = np.zeros(2, np.int64)
    state.count_members(counts)
    assert counts.tolist() == [2, 1]
    assert found(state.close(came_to(11, 41, 1))) == [(0, "a", 30, 40, 1)]
    assert state.rows == 0


def test_sessions_that_nothing_happens_to_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, rounds, touched = 4_000, 64, 10
    state = SessionState(SHAPE)
    state.add(stretches(*((0, f"k{at}", 0, 10**9) for at in range(kept))))
    handled: list[int] = []

    class Noted(_SessionRun):
        def __init__(self, rows: pa.Table, hashes: Bits) -> None:
            super().__init__(rows, hashes)
            handled.append(rows.num_rows)

    monkeypatch.setattr(session_state, "_SessionRun", Noted)
    for at in range(rounds):
        state.add(stretches(*((0, f"k{at * touched + n}", 1, 10**9) for n in range(touched))))
        assert state.close(came_to(LONG_AGO_US, 1)) is None
        assert len(state._runs) <= math.log2(kept) + 1
    assert sum(handled) <= rounds * touched * math.log2(kept)
    assert state.rows == kept
