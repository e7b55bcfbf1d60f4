"""What every generated feed promises, checked on each of them."""

import math
import os
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeds.samples import ENDLESS, FEEDS, digest
from laws import tried
from penstock.errors import InputError
from penstock.feeds.feed import Feed
from penstock.feeds.generated import instant_us
from penstock.feeds.meters import Meters

WHOLE = {name: feed.read(0, feed.size or 0) for name, feed in FEEDS.items()}
quick = tried(30)


def times_us(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy()


@pytest.mark.parametrize("name", FEEDS)
def test_is_a_feed_with_its_schema(name: str) -> None:
    feed: Feed = FEEDS[name]
    assert WHOLE[name].schema == feed.schema
    assert WHOLE[name].num_rows == feed.size
    assert feed.schema.field(feed.event_time).type == pa.timestamp("us", tz="UTC")
    assert sum(column.null_count for column in WHOLE[name].columns) == 0


@quick
@given(st.sampled_from(sorted(FEEDS)), st.data())
def test_any_cut_gives_the_same_rows(name: str, data: st.DataObject) -> None:
    feed, whole = FEEDS[name], WHOLE[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, whole.num_rows), min_size=2, max_size=5)))
    pieces = [feed.read(a, b) for a, b in pairwise(cuts)]
    assert pa.concat_tables(pieces).equals(whole.slice(cuts[0], cuts[-1] - cuts[0]))


@quick
@given(st.sampled_from(sorted(ENDLESS)), st.integers(0, 10**11), st.integers(0, 400))
def test_any_cut_far_into_an_endless_feed(name: str, start: int, rows: int) -> None:
    feed = ENDLESS[name]
    both = feed.read(start, start + rows + 100)
    assert both.slice(rows).equals(feed.read(start + rows, start + rows + 100))


@pytest.mark.parametrize("name", FEEDS)
def test_large_reads_are_made_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.feeds.generated._PIECE_ROWS", 97)
    assert FEEDS[name].read(0, FEEDS[name].size or 0).equals(WHOLE[name])


def test_rows_are_the_same_in_another_process() -> None:
    far = 5_000_000_000
    program = f"""
from feeds.samples import ENDLESS, digest
print(*[digest(feed, {far}, {far} + 300) for feed in ENDLESS.values()])
"""
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [digest(feed, far, far + 300) for feed in ENDLESS.values()]


def test_feeds_can_be_sent_to_other_processes() -> None:
    for feed in FEEDS.values():
        # Only the configuration travels, none of the tables made from it.
        sent = pickle.dumps(feed)
        assert len(sent) < 500 and pickle.loads(sent) == feed


@pytest.mark.parametrize("name", FEEDS)
def test_other_seeds_give_other_rows(name: str) -> None:
    feed = FEEDS[name]
    other = type(feed)(**{**vars(feed), "seed": 4})
    assert other.size == feed.size
    assert not other.read(0, 50).equals(WHOLE[name].slice(0, 50))


@pytest.mark.parametrize("name", FEEDS)
def test_disorder_is_bounded_and_present(name: str) -> None:
    seen = times_us(WHOLE[name])
    behind_s = (np.maximum.accumulate(seen) - seen) / 1e6
    bound_s = FEEDS[name].disorder_s
    assert behind_s.max() <= bound_s
    if bound_s:
        assert behind_s.max() > bound_s / 2
        assert 0.1 < (behind_s > 0).mean() < 0.9


@pytest.mark.parametrize("name", FEEDS)
def test_disorder_moves_rows_without_changing_them(name: str) -> None:
    feed = FEEDS[name]
    in_order = type(feed)(**{**vars(feed), "disorder_s": 0})
    expected = in_order.read(0, in_order.size or 0)
    order = [(column, "ascending") for column in expected.column_names]
    assert WHOLE[name].sort_by(order).equals(expected.sort_by(order))
    assert (np.diff(times_us(expected)) >= 0).all()


@pytest.mark.parametrize("name", FEEDS)
def test_nothing_happens_before_the_start(name: str) -> None:
    assert times_us(WHOLE[name]).min() >= instant_us(FEEDS[name].start)


@quick
@given(st.sampled_from(sorted(FEEDS)), st.data())
def test_high_water_is_the_running_maximum(name: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(1, WHOLE[name].num_rows))
    expected = int(times_us(WHOLE[name])[:position].max())
    assert FEEDS[name].high_water_us(position) == expected


def test_high_water_before_the_first_row() -> None:
    assert all(feed.high_water_us(0) is None for feed in FEEDS.values())


@pytest.mark.parametrize("name", ENDLESS)
def test_high_water_far_into_an_endless_feed(name: str) -> None:
    far, before = 10**10, 20_000
    seen = times_us(ENDLESS[name].read(far - before, far))
    assert ENDLESS[name].high_water_us(far) == int(seen.max())


@quick
@given(st.sampled_from(sorted(FEEDS)), st.lists(st.floats(-1, 60), min_size=2, max_size=6))
def test_due_never_decreases_or_exceeds_the_size(name: str, moments: list[float]) -> None:
    due = [FEEDS[name].due(moment) for moment in sorted(moments)]
    assert due == sorted(due)
    assert due[0] >= 0 and due[-1] <= WHOLE[name].num_rows


@quick
@given(st.sampled_from(sorted(FEEDS)), st.floats(0, 50))
def test_due_rows_have_happened_and_are_at_most_the_disorder_late(
    name: str, elapsed_s: float
) -> None:
    feed, seen = FEEDS[name], times_us(WHOLE[name])
    now_us = instant_us(feed.start) + math.floor(elapsed_s * (feed.speedup or 0) * 1e6)
    due = feed.due(elapsed_s)
    assert (seen[:due] <= now_us).all()
    assert (seen[due:] > now_us - feed.disorder_s * 1e6).all()


@pytest.mark.parametrize("name", FEEDS)
def test_everything_is_due_in_the_end(name: str) -> None:
    assert FEEDS[name].due(-1) == 0
    assert FEEDS[name].due(1e9) == FEEDS[name].due(math.inf) == FEEDS[name].size


def test_everything_is_due_at_once_without_a_speedup() -> None:
    assert Meters(homes=10, days=1).due(0) == 480


def test_endless_feeds_stay_endless() -> None:
    assert all(feed.size is None for feed in ENDLESS.values())
    assert all(feed.due(1e8) > 10_000_000 for feed in ENDLESS.values())


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (5, 4), (470, 481)])
def test_positions_outside_the_feed(start: int, stop: int) -> None:
    with pytest.raises(InputError) as error:
        Meters(homes=10, days=1).read(start, stop)
    assert str(error.value) == (
        f"there are no positions {start} to {stop} in a feed of 480 rows. "
        "Positions count from 0 and end at the size of the feed."
    )


def test_reading_nothing() -> None:
    for feed in FEEDS.values():
        assert feed.read(7, 7).equals(feed.schema.empty_table())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"days": 1, "speedup": 0}, "the speedup must be a number above 0; got 0"),
        ({"days": 1, "speedup": math.inf}, "the speedup must be a number above 0; got inf"),
        ({"days": 1, "disorder_s": -1}, "the disorder must be 0 seconds or more; got -1"),
        (
            {"days": 1, "disorder_s": math.nan},
            "the disorder must be 0 seconds or more; got nan",
        ),
        (
            {"homes": 10**6, "days": 1, "disorder_s": 36_000},
            "a disorder of 36000 seconds mixes more than 10,000,000 rows. "
            "Lower the disorder or the rate.",
        ),
        (
            {"days": 1, "start": "tomorrow"},
            "'tomorrow' is not a time. Write for example 2026-01-05T00:00:00Z.",
        ),
        (
            {},
            "this feed would never end and never wait. Limit its length or give a speedup.",
        ),
    ],
)
def test_what_cannot_be_generated(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        Meters(**options)
    assert str(error.value) == message


@pytest.mark.parametrize("start", ["2026-01-05", "2026-01-05T00:00:00", "2026-01-05T02:00+02:00"])
def test_starts_are_utc_unless_they_say_otherwise(start: str) -> None:
    assert instant_us(start) == 1_767_571_200_000_000
