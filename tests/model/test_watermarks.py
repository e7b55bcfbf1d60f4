"""What operators promise about times, held against a simulation of how their rows come out.

The plain reasoning: rows come in batches; a batch runs with the watermark that the batches before
it have told, the least of all inputs. An operator's output may then claim, from that batch on, no
time column earlier than that watermark less the operator's delay and the column's own lag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import assume, given
from hypothesis import strategies as st

from laws import tried
from model.samples import counted, input_of, read
from penstock.model.expressions import Column
from penstock.model.operators import Map, Operator, WindowJoin
from penstock.model.windows import TimeBound, Window

Row = dict[str, int | None]
LEFT, RIGHT = read("a", "l timestamp", "l"), read("b", "r timestamp", "r")
simulated = tried(80)


@dataclass
class Arrivals:
    """One stream's rows in order of arrival; those too late are gone before they get here."""

    lateness_us: int
    high_us: int | None = None

    def take(self, times: list[int]) -> list[int]:
        kept = []
        for time in times:
            self.high_us = time if self.high_us is None else max(time, self.high_us)
            if time >= self.high_us - self.lateness_us:
                kept.append(time)
        return kept

    @property
    def watermark_us(self) -> int | None:
        return None if self.high_us is None else self.high_us - self.lateness_us


@dataclass
class Join:
    """A join as Spark runs it: pairs as they arrive, lonely left rows when they are let go.

    The rules for letting go are Spark's: watermarks are whole milliseconds, and a bound that
    includes its end costs one more.
    """

    operator: WindowJoin
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    lonely: set[tuple[int, int]] = field(default_factory=set)

    def run(self, left: list[int], right: list[int], watermark_us: int) -> Iterator[Row]:
        bound = self.operator.bound
        first = len(self.left)
        self.lonely |= {(first + at, one) for at, one in enumerate(left)}
        old_right = len(self.right)
        self.left += left
        self.right += right
        for at, one in enumerate(self.left):
            # A pair comes out with the later of its two rows.
            for other in self.right if at >= first else self.right[old_right:]:
                if one + bound.lower_us <= other <= one + bound.upper_us:
                    self.lonely.discard((at, one))
                    yield {"l": one, "r": other}
        if self.operator.join == "left":
            yield from self._let_go(watermark_us)

    def _let_go(self, watermark_us: int) -> Iterator[Row]:
        bound = self.operator.bound
        gone_ms = (watermark_us - bound.upper_us) // 1_000 - 1
        if bound.lower_us == bound.upper_us == 0:
            gone_ms = watermark_us // 1_000
        for at, one in sorted(self.lonely):
            if one <= gone_ms * 1_000:
                self.lonely.discard((at, one))
                yield {"l": one, "r": None}


def check_promise(operator: Operator, batches: list[tuple[int, list[Row]]]) -> int:
    """Raises if a row comes out below what an earlier batch promised; how many rows came out."""
    promised_us: int | None = None
    rows_out = 0
    for watermark_us, rows in batches:
        for row in rows:
            rows_out += 1
            for time in operator.output.times:
                value = row[time.column]
                assert value is not None
                assert promised_us is None or value >= promised_us - time.behind_us, (time, row)
        promised_us = watermark_us - operator.delay_us
    return rows_out


def in_whole_milliseconds(watermark_us: int) -> int:
    """The watermark that Spark is told: a row exactly at the real one is not late yet."""
    return (watermark_us - 1) // 1_000 * 1_000


walks = st.lists(st.integers(-3_000, 5_000), min_size=1, max_size=8)
batches_of_steps = st.lists(st.tuples(walks, walks), min_size=2, max_size=8)


def joined_batches(
    operator: WindowJoin, steps: list[tuple[list[int], list[int]]], lateness_us: tuple[int, int]
) -> list[tuple[int, list[Row]]]:
    sides = [Arrivals(one) for one in lateness_us]
    now = [1_000_000, 1_000_000]
    join, found = Join(operator), []
    for batch in steps:
        told = [one.watermark_us for one in sides]
        watermark_us = in_whole_milliseconds(min(0 if one is None else one for one in told))
        taken = []
        for at, (side, walk) in enumerate(zip(sides, batch, strict=True)):
            times = []
            for step in walk:
                now[at] += step
                times.append(now[at])
            taken.append(side.take(times))
        found.append((watermark_us, list(join.run(taken[0], taken[1], watermark_us))))
    return found


bounds = st.tuples(st.integers(-8_000, 8_000), st.integers(-8_000, 8_000)).map(sorted)


@simulated
@given(
    bound=bounds,
    kind=st.sampled_from(["inner", "left"]),
    steps=batches_of_steps,
    lateness_us=st.tuples(st.integers(0, 4_000), st.integers(0, 4_000)),
)
def test_no_joined_row_comes_out_below_the_promised_watermark(
    bound: list[int],
    kind: str,
    steps: list[tuple[list[int], list[int]]],
    lateness_us: tuple[int, int],
) -> None:
    join = WindowJoin("j", LEFT, RIGHT, (), TimeBound(*bound), join=kind)  # type: ignore[arg-type]
    assume(check_promise(join, joined_batches(join, steps, lateness_us)))


def test_the_promise_of_an_inner_join_is_the_best_there_is() -> None:
    """One microsecond less delay, and a pair comes out too early: the bound is not just safe."""
    join = WindowJoin("j", LEFT, RIGHT, (), TimeBound(-3_000, 7_000))
    assert [(time.column, time.behind_us) for time in join.output.times] == [("r", 0), ("l", 4_000)]
    at = 100_000
    # The watermark stands at ``at`` when a right row exactly there finds its oldest partner ...
    oldest_left = {"l": at - 7_000, "r": at}
    # ... and a left row exactly there its oldest.
    oldest_right = {"l": at, "r": at - 3_000}
    for row in (oldest_left, oldest_right):
        check_promise(join, [(at, []), (at, [row])])
        tight = [
            row[time.column] == at - join.delay_us - time.behind_us for time in join.output.times
        ]
        assert any(tight)


@simulated
@given(
    steps=st.lists(walks, min_size=2, max_size=8),
    size_us=st.integers(1, 6).map(lambda one: one * 1_000),
    slides=st.integers(1, 3),
    lateness_us=st.integers(0, 4_000),
)
def test_no_window_comes_out_below_the_promised_watermark(
    steps: list[list[int]], size_us: int, slides: int, lateness_us: int
) -> None:
    slide_us = size_us // slides or size_us
    aggregate = counted("a", LEFT, Window.of(size_us, slide_us))
    start = Map("m", input_of(aggregate), (("from_", Column("window_start")),))
    found = list(windows(steps, size_us, slide_us, lateness_us))
    check_promise(aggregate, found)
    starts = [(mark, [{"from_": row["window_start"]} for row in rows]) for mark, rows in found]
    check_promise(start, starts)


def windows(
    steps: list[list[int]], size_us: int, slide_us: int, lateness_us: int
) -> Iterator[tuple[int, list[Row]]]:
    arrivals, now, open_ends = Arrivals(lateness_us), 1_000_000, set()
    for walk in [*steps, [100_000], [1]]:
        watermark_us = in_whole_milliseconds(arrivals.watermark_us or 0)
        times = []
        for step in walk:
            now += step
            times.append(now)
        for one in arrivals.take(times):
            first_end = one // slide_us * slide_us + slide_us
            open_ends |= set(range(first_end, one + size_us + 1, slide_us))
        closed = sorted(open_end for open_end in open_ends if open_end <= watermark_us)
        open_ends -= set(closed)
        yield watermark_us, [{"window_start": one - size_us, "window_end": one} for one in closed]
