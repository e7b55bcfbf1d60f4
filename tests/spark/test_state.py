"""The folder that remembers: epochs, plans, the lock, and forgetting it all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from model.samples import MIN, S, counted, filtered, input_of, more, stream_of
from penstock.channels.durable import read_text, write_text
from penstock.errors import InputError, RunError
from penstock.model.canonical import plan_signature
from penstock.model.canonical_stream import VERSION
from penstock.model.network import Network, Query
from penstock.model.operators import Aggregate
from penstock.model.sources import DirectorySource, GeneratorSource, MemorySink, Stream
from penstock.model.windows import Window
from penstock.place.fuse import fuse
from penstock.spark.fragment_folder import FragmentFolder
from penstock.spark.state import StateFolder, StateLock

from channels.disk import names

pytestmark = pytest.mark.core

READINGS = stream_of("readings")
OTHERS = stream_of("others")
HIGH = filtered("high", input_of(READINGS))
PER_MINUTE = counted("per_minute", input_of(HIGH))
SOURCE = READINGS.source
assert isinstance(SOURCE, DirectorySource)


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    found = StateFolder(tmp_path / "state")
    found.prepare()
    return found


def network(
    stream: Stream = READINGS, aggregate: Aggregate = PER_MINUTE, **query: object
) -> Network:
    high = replace(HIGH, input=input_of(stream))
    result = Query("per_minute", "per_minute", MemorySink(), **query)  # type: ignore[arg-type]
    return Network((stream, OTHERS), (high, aggregate), (result,))


def printed(found: Network) -> str:
    (fragment,) = fuse(found)
    return plan_signature(found, fragment)


class TestPlanSignatures:
    def test_repeat(self) -> None:
        assert printed(network()) == printed(network())
        assert printed(network()).startswith(f"{VERSION}:")

    @pytest.mark.parametrize(
        "change",
        [
            lambda: network(aggregate=replace(PER_MINUTE, window=Window.of(2 * MIN))),
            lambda: network(aggregate=replace(PER_MINUTE, keys=(("k", more("kwh", 1)),))),
            lambda: network(replace(READINGS, lateness_us=S)),
            lambda: network(replace(READINGS, ahead_us=S)),
            lambda: network(replace(READINGS, source=replace(SOURCE, path=Path("elsewhere")))),
            lambda: network(replace(READINGS, source=replace(SOURCE, pattern="*.csv"))),
            lambda: network(stream_of("readings", "ts timestamp, kwh double, home string")),
            lambda: network(replace(READINGS, source=GeneratorSource("meters", {"homes": 3}))),
        ],
    )
    def test_change_with_the_fragment_and_what_it_reads(
        self, change: Callable[[], Network]
    ) -> None:
        assert printed(change()) != printed(network())

    def test_do_not_change_with_anything_else(self) -> None:
        other_stream = replace(network(), streams=(READINGS, stream_of("another")))
        assert printed(other_stream) == printed(network())
        assert printed(network(max_latency_us=S, text="SELECT …")) == printed(network())

    def test_do_not_change_with_the_order_of_options(self) -> None:
        one = GeneratorSource("meters", {"homes": 3, "days": 1})
        other = GeneratorSource("meters", {"days": 1, "homes": 3})
        assert printed(network(replace(READINGS, source=one))) == printed(
            network(replace(READINGS, source=other))
        )

    def test_are_the_same_in_every_process(self) -> None:
        program = "from test_state import network, printed; print(printed(network()))"
        paths = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": ":".join(paths), "PYTHONHASHSEED": "7"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == printed(network())


def test_a_plan_that_has_changed_is_refused(state: StateFolder) -> None:
    before = network()
    (fragment,) = fuse(before)
    state.check_plan(before, fragment)
    state.check_plan(before, fragment)
    after = network(aggregate=replace(PER_MINUTE, window=Window.of(S)))
    (changed,) = fuse(after)
    with pytest.raises(InputError) as caught:
        state.check_plan(after, changed)
    assert str(caught.value) == (
        f"per_minute has changed since its state in {state.path} was written. "
        "Run with --fresh to start over, or give the changed query a new name."
    )
    # Refusing changes nothing, and clearing makes room for the new plan.
    state.check_plan(before, fragment)
    state.clear()
    state.check_plan(after, changed)


@pytest.mark.parametrize("known", ["0123456789abcdef" * 2, "1:0123", "4:4567", ""])
def test_plans_of_another_version_are_refused_in_words(state: StateFolder, known: str) -> None:
    found = network()
    (fragment,) = fuse(found)
    path = state.fragment(fragment.name).path / "plan"
    path.parent.mkdir(parents=True)
    write_text(path, known)
    with pytest.raises(InputError) as caught:
        state.check_plan(found, fragment)
    assert str(caught.value) == (
        f"the state of per_minute in {state.path} was written by another version of Penstock, "
        "and whether it is of the same query cannot be told. "
        "Finish it with that version, or run with --fresh to start over."
    )
    assert read_text(path) == known


def test_epochs_rise_for_ever(state: StateFolder) -> None:
    assert [state.next_epoch() for _ in range(3)] == [1, 2, 3]
    assert StateFolder(state.path).next_epoch() == 4


def test_a_damaged_epoch_is_refused_by_name(state: StateFolder) -> None:
    (state.path / "epoch").write_text("x")
    with pytest.raises(RunError, match=r"state/epoch is damaged"):
        state.next_epoch()


def test_a_life_lasts_until_the_fragment_is_dropped(state: StateFolder) -> None:
    """Sinks outside know batches by it: those of a fragment made anew are other ones."""
    folder = state.fragment("heavy")
    folder.claim(1)
    first = folder.life()
    assert first == folder.life() == StateFolder(state.path).fragment("heavy").life()
    folder.claim(2)
    assert folder.life() == first
    shutil.rmtree(folder.path)
    folder.claim(1)
    assert folder.life() != first


def test_fragments_have_lives_of_their_own(state: StateFolder) -> None:
    for name in ("heavy", "light"):
        state.fragment(name).claim(1)
    assert state.fragment("heavy").life() != state.fragment("light").life()


def test_clearing_forgets_everything_but_the_log_and_the_lock(state: StateFolder) -> None:
    lock = StateLock(state)
    state.next_epoch()
    state.rehearsals("a").mkdir(parents=True)
    state.channel("readings").register("heavy")
    state.fragment("heavy").path.mkdir(parents=True)
    state.stream("readings").mkdir(parents=True)
    state.dead_letters("readings").folder.mkdir(parents=True)
    state.log.write_text("…")
    state.clear()
    assert names(state.path) == ["lock", "log"]
    lock.release()


def test_clearing_an_empty_folder_is_nothing(tmp_path: Path) -> None:
    StateFolder(tmp_path / "not there").clear()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        StateFolder(tmp_path / "file" / "state").prepare()
    assert str(caught.value) == (
        f"the state folder {tmp_path}/file/state cannot be made: Not a directory. "
        "Choose another with --state."
    )


HOLD = """
import sys
from pathlib import Path
from penstock.spark.state import StateFolder, StateLock
lock = StateLock(StateFolder(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


class TestLock:
    def test_one_process_at_a_time(self, state: StateFolder) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(state.path)],
            env={"PYTHONPATH": ":".join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(RunError) as caught:
                StateLock(state)
            assert str(caught.value) == (
                f"the state in {state.path} is in use by process {holder.pid}. "
                "Stop that process first, or choose another folder with --state."
            )
            # A process that is killed holds nothing.
            holder.kill()
            holder.wait()
            StateLock(state).release()

    def test_a_second_one_in_the_same_process(self, state: StateFolder) -> None:
        first = StateLock(state)
        with pytest.raises(RunError, match="is in use by process"):
            StateLock(state)
        first.release()
        StateLock(state).release()


class TestFragmentFolder:
    def test_a_fragment_finishes_once_and_for_all(self, tmp_path: Path) -> None:
        folder = FragmentFolder(tmp_path)
        assert not folder.is_finished
        folder.finish()
        assert FragmentFolder(tmp_path).is_finished

    def test_rows_out_of_a_batch_count_once(self, tmp_path: Path) -> None:
        folder = FragmentFolder(tmp_path)
        assert folder.rows_out() == {"batch": -1, "rows": 0}
        for batch_id, rows in ((0, 5), (1, 3), (1, 3), (0, 5), (2, 0)):
            folder.add_rows_out(batch_id, rows)
        assert FragmentFolder(tmp_path).rows_out() == {"batch": 2, "rows": 8}
