"""Replaying a recording at its pace, and what an idle stream does to time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.channels.manifest import END_OF_TIME_US
from penstock.errors import InputError

from channels.ingest.places import Clock, Place, S, place, replay, run

pytestmark = pytest.mark.core


class TestReplay:
    ROWS = ("10,0", "11,1", "15,2", "14,3", "20,4")

    def test_without_a_pace_it_is_all_there_at_once(self, tmp_path: Path) -> None:
        here = replay(tmp_path, *self.ROWS, lateness_us=S)
        one = here.start()
        run(one)
        assert here.rows() == [0, 1, 2, 3, 4]
        assert one.is_finished
        assert here.manifests()[-1].watermark_us == END_OF_TIME_US

    def test_rows_come_when_their_time_has_come(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, *self.ROWS, speedup=2, lateness_us=S)
        one = here.start()
        seen = []
        for _ in range(13):
            run(one)
            seen.append(len(here.rows()))
            clock.now_s += 0.5
        # Twice as fast as recorded: 10 s of event time in 5 s; row 3 waits for the later row 2.
        assert seen == [1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 5, 5, 5]
        assert one.is_finished

    def test_while_it_waits_nothing_is_written(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, *self.ROWS, speedup=1)
        one = here.start()
        run(one)
        before = here.manifests()
        for _ in range(20):
            clock.now_s += 0.01
            assert not one.step()
        assert here.manifests() == before

    def test_a_restart_goes_on_at_the_same_pace(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, *self.ROWS, speedup=1, lateness_us=S)
        run(here.start())
        assert here.rows() == [0]
        clock.now_s += 1_000
        one = here.start()
        run(one)
        assert here.rows() == [0]
        clock.now_s += 1.5
        run(one)
        assert here.rows() == [0, 1]

    def test_rows_without_a_time_do_not_stop_it(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, ",0", ",1", *self.ROWS, ",9", speedup=1, lateness_us=S)
        one = here.start()
        for _ in range(12):
            run(one)
            clock.now_s += 1
        assert here.rows() == [0, 1, 2, 3, 4]
        assert here.letters.counts() == {"malformed": 0, "late": 0, "untimed": 3}
        assert one.is_finished

    def test_rejects_of_a_piece_that_waits_are_counted_once(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        here = replay(tmp_path, "10,0", "x,1", "50,2", "y,3", "60,4", speedup=1)
        for _ in range(8):
            one = here.start()
            for _ in range(10):
                clock.now_s += 5
                run(one)
        assert here.rows() == [0, 2, 4]
        assert here.letters.counts() == {"malformed": 2, "late": 0}

    @pytest.mark.parametrize("content", [None, "when,n\n1,1\n"])
    def test_a_recording_that_cannot_be_read_is_an_error(
        self, tmp_path: Path, content: str | None
    ) -> None:
        here = replay(tmp_path)
        path = tmp_path / "in" / "recorded.csv"
        path.unlink() if content is None else path.write_text(content)
        with pytest.raises(InputError, match=r"no file|has no column ts"):
            here.start().step()


class TestIdling:
    def idle(self, root: Path, lateness_us: int, timeout_us: int) -> Place:
        here = place(root, lateness_us=lateness_us)
        here.stream = replace(here.stream, idle_timeout_us=timeout_us)
        here.put("a.csv", "100,0")
        return here

    def marks(self, here: Place) -> list[float]:
        return [(manifest.watermark_us or 0) / S for manifest in here.manifests()]

    def test_time_moves_on_after_the_timeout(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 2 * S, 10 * S)
        one = here.start()
        run(one)
        assert self.marks(here) == [98]
        clock.now_s += 9.9
        assert not one.step()
        clock.now_s += 0.2
        assert one.step()
        assert not one.step()
        assert self.marks(here) == [98, 108]
        clock.now_s += 10
        run(one)
        assert self.marks(here) == [98, 108, 118]

    def test_a_long_lateness_is_added_once_not_every_time(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        """Else rows that come again after a pause would all be late."""
        here = self.idle(tmp_path, 3_600 * S, 10 * S)
        one = here.start()
        for _ in range(10):
            run(one)
            clock.now_s += 10
        run(one)
        # As if a row a full lateness ahead had come: what there is can close, no more.
        assert self.marks(here) == [100 - 3_600, 100]
        here.put("b.csv", "200,1")
        run(one)
        assert here.rows() == [0, 1]

    def test_restarting_an_idle_stream_moves_nothing(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 3_600 * S, 10 * S)
        for _ in range(5):
            one = here.start()
            run(one)
            clock.now_s += 11
            run(one)
        assert self.marks(here) == [100 - 3_600, 100]

    def test_rows_behind_the_time_that_passed_are_late(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 2 * S, 10 * S)
        one = here.start()
        run(one)
        clock.now_s += 10
        run(one)
        here.put("b.csv", "107,1", "108,2")
        run(one)
        assert here.rows() == [0, 2]
        assert here.letters.counts()["late"] == 1

    def test_a_row_ends_the_pause(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 0, 10 * S)
        one = here.start()
        run(one)
        clock.now_s += 9
        here.put("b.csv", "101,1")
        run(one)
        clock.now_s += 9
        run(one)
        assert self.marks(here) == [100, 101]

    def test_a_stream_that_never_had_a_row_has_no_time_to_move(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        here = self.idle(tmp_path, 0, 10 * S)
        (tmp_path / "in" / "a.csv").unlink()
        one = here.start()
        clock.now_s += 100
        assert not one.step()
        assert here.manifests() == []
