"""What a round gives: one file for all channels, and nobody pays for another's trouble."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.channels.channel import Channel
from penstock.channels.writer import Writer
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.spark.bundles import messengers as module
from penstock.spark.bundles.bundle import Delivery
from penstock.spark.bundles.bundle_log import Given, Member
from penstock.spark.bundles.light_run import LightRun
from penstock.spark.bundles.messengers import Messengers
from penstock.spark.bundles.running import InputPosition, Running
from penstock.spark.fragment_folder import FragmentFolder
from penstock.spark.sinks.batch import Batch, Rows
from penstock.spark.sinks.channel_sink import ChannelSink

pytestmark = pytest.mark.core
NAMES = ("a", "b", "c")
QUERIES = "".join(
    f"  {name}: SELECT window.end AS at, count(*) AS n FROM s GROUP BY window(ts, '1 minute')\n"
    for name in NAMES
)
STREAM = """
streams:
  s: {source: {directory: in, format: csv}, schema: ts timestamp, event_time: ts, lateness: 0s}
queries:
"""


class Terminal:
    """A sink that is no channel, and may refuse."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.counts: list[int] = []

    def write(self, rows: Rows, batch: Batch) -> int:
        assert isinstance(rows, pa.Table)
        if self.refuses:
            raise ConnectionError("nobody answers")
        self.counts += rows.column("n").to_pylist()
        return int(rows.num_rows)


class Place:
    """Members with a channel each; those in ``sinks`` have another sink as well."""

    def __init__(self, folder: Path, sinks: dict[str, Terminal]) -> None:
        network = parse_deployment(STREAM + QUERIES, "d.yaml", folder).network
        self.runs: dict[str, LightRun] = {}
        for fragment in fuse(network):
            name = fragment.name
            plan = plan_windows(fragment)
            assert isinstance(plan, WindowPlan)
            writer = Writer(Channel.open(folder / "channels" / name), 1)
            own = FragmentFolder(folder / "fragments" / name)
            own.claim(1)
            others = [sinks[name]] if name in sinks else []
            all_sinks = [ChannelSink(writer), *others]
            self.runs[name] = LightRun(fragment, plan, 1, own, all_sinks, writer, 1)
        (folder / "log").mkdir()
        self.log = folder / "log"
        self.messengers = Messengers(self.log)

    def deliver(self, batch_id: int, ended: bool = False) -> dict[int, Exception]:
        given = [self._delivery(name, batch_id, ended) for name in NAMES]
        found = self.messengers.deliver(self.runs, given)
        assert list(self.log.iterdir()) == [], "nothing is left where the round's file lay"
        return found

    def _delivery(self, name: str, batch_id: int, ended: bool) -> Delivery:
        plan = self.runs[name].plan if name in self.runs else self.runs["a"].plan
        number = NAMES.index(name)
        rows = pa.table({"at": [10**15], "n": [100 * batch_id + number]})
        rows = rows.cast(pa.schema([("at", pa.timestamp("us", "UTC")), ("n", pa.int64())]))
        rows = rows.cast(arrow_schema(plan.output.schema))
        position = InputPosition(plan.streams[0], None, 0, 0, ended=ended)
        running = Running(Member(number, name, 1), plan, (position,))
        return Delivery(running, Given(batch_id, rows, 5.0))

    def counts(self, name: str) -> list[int]:
        channel = self.runs[name].output
        assert channel is not None
        return [
            count
            for manifest in channel.channel.kept()
            for file in manifest.files
            for count in channel.channel.rows_of(file, ["n"]).column("n").to_pylist()
        ]


def links(place: Place, name: str, sequence: int = 0) -> int:
    output = place.runs[name].output
    assert output is not None
    return output.channel.entry(sequence).stat().st_nlink


def test_all_channels_have_one_file(tmp_path: Path) -> None:
    place = Place(tmp_path, {"b": Terminal()})
    assert place.deliver(1) == place.deliver(2) == {}
    assert [place.counts(name) for name in NAMES] == [[100, 200], [101, 201], [102, 202]]
    assert [links(place, name) for name in NAMES] == [3, 3, 3]


def test_what_others_read_is_written_for_them(tmp_path: Path) -> None:
    place = Place(tmp_path, {})
    output = place.runs["b"].output
    assert output is not None
    output.channel.register("reader")
    place.deliver(1)
    assert [links(place, name) for name in NAMES] == [2, 1, 2]
    assert [path.suffix for path in output.channel.data.iterdir()] == [".parquet"]
    assert place.counts("b") == [101]


def test_one_that_cannot_be_told_is_told_again_alone(tmp_path: Path) -> None:
    terminal = Terminal(refuses=True)
    place = Place(tmp_path, {"b": terminal})
    failed = place.deliver(1)
    assert {number: str(error) for number, error in failed.items()} == {1: "nobody answers"}
    terminal.refuses = False
    assert place.deliver(1) == {}
    assert terminal.counts == [101]
    assert [place.counts(name) for name in NAMES] == [[100], [101], [102]], "each once"


def test_one_that_nobody_runs_here_any_more(tmp_path: Path) -> None:
    place = Place(tmp_path, {})
    del place.runs["c"]
    assert list(place.deliver(1)) == [2]
    assert [place.counts(name) for name in ("a", "b")] == [[100], [101]]


def test_a_full_disk_is_the_trouble_of_those_who_share_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, {})
    output = place.runs["b"].output
    assert output is not None
    output.channel.register("reader")

    def write(path: Path, batches: object) -> None:
        path.write_bytes(b"penstock sha")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_shared", write)
        assert sorted(place.deliver(1)) == [0, 2]
    assert [place.counts(name) for name in NAMES] == [[], [101], []]
    assert place.deliver(1) == {}
    assert [place.counts(name) for name in NAMES] == [[100], [101], [102]]


def test_the_end_is_told_and_kept(tmp_path: Path) -> None:
    place = Place(tmp_path, {})
    assert place.deliver(1, ended=True) == {}
    for name in NAMES:
        output = place.runs[name].output
        assert output is not None and output.last is not None
        assert output.last.ended
        assert place.runs[name].folder.is_finished
