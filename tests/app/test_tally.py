"""Counting rows once."""

from cli.made_up import fragment, network, status
from penstock.app.tally import Counted, rows_delivered, rows_from_outside, set_aside_since, since
from penstock.model.sources import ConsoleSink


def test_a_stream_read_twice_is_counted_once() -> None:
    fragments = [fragment("a", "readings"), fragment("b", "readings")]
    assert rows_from_outside(fragments, [status("a", 100), status("b", 90)]) == 100


def test_rows_passed_on_do_not_come_from_outside() -> None:
    fragments = [fragment("a", "readings"), fragment("b", "a"), fragment("c", "a", "b")]
    statuses = [status("a", 100, 10), status("b", 10, 4), status("c", 14)]
    assert rows_from_outside(fragments, statuses) == 100


def test_a_join_of_streams_counts_both() -> None:
    assert rows_from_outside([fragment("a", "bids", "items")], [status("a", 70)]) == 70


def test_what_is_known_of_one_input_tells_about_the_other() -> None:
    fragments = [fragment("a", "bids", "items"), fragment("b", "bids")]
    assert rows_from_outside(fragments, [status("a", 70), status("b", 60)]) == 70


def test_a_reader_ahead_of_its_writer_makes_nothing_negative() -> None:
    fragments = [fragment("a", "readings"), fragment("b", "a", "items")]
    assert rows_from_outside(fragments, [status("a", 100, 50), status("b", 20)]) == 100


def test_only_rows_that_go_somewhere_are_delivered() -> None:
    made = network(("heavy", ConsoleSink()), ("inner", None))
    fragments = [fragment("heavy", queries=("heavy",)), fragment("inner", queries=("inner",))]
    statuses = [status("heavy", 9, 3), status("inner", 9, 9)]
    assert rows_delivered(made, fragments, statuses) == 3


def test_only_this_run_counts() -> None:
    (now,) = since({"a": Counted(3, 40)}, [status("a", 5, 42)])
    assert (now.rows_in, now.rows_out) == (2, 2)
    assert set_aside_since({"s": {"late": 3}}, {"s": {"late": 5, "malformed": 1}}) == {
        "s": {"late": 2, "malformed": 1}
    }
