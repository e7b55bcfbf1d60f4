"""How far a fragment's output is behind its inputs."""

from model.samples import MIN, S, counted, filtered, input_of, read
from penstock.model.expressions import Column
from penstock.model.fragments import Fragment
from penstock.model.operators import Input, Map, Operator, Union, WindowJoin
from penstock.model.windows import TimeBound, Window

ROWS = read("readings", "ts timestamp, kwh double", "ts")
OFFERS = read("offers", "at timestamp, cents int", "at")
JOIN = WindowJoin("j", ROWS, OFFERS, (), TimeBound(-S, MIN))
WINDOWS = Input("a", counted("a", ROWS, Window.of(MIN)).output)
STARTS = Map("starts", WINDOWS, (("from_", Column("window_start")), ("n", Column("n"))))


def delay_us(*operators: Operator, output: str = "") -> int:
    made = {name for operator in operators for name in operator.outputs}
    inputs = {input.stream for operator in operators for input in operator.inputs} - made
    result = output or operators[-1].name
    return Fragment(result, tuple(sorted(inputs)), operators, result).delay_us


def test_stateless_work_is_not_behind() -> None:
    assert delay_us(filtered("f", ROWS)) == 0
    assert Fragment("readings", ("readings",), (), "readings").delay_us == 0


def test_a_join_is_behind_by_its_reach() -> None:
    assert delay_us(JOIN) == S


def test_a_windows_start_is_behind_by_its_size() -> None:
    assert delay_us(counted("a", ROWS, Window.of(MIN))) == 0
    assert delay_us(STARTS) == MIN


def test_delays_add_up_along_a_path() -> None:
    left_time_only = Map("m", input_of(JOIN), (("ts", Column("ts")), ("kwh", Column("kwh"))))
    assert [time.column for time in JOIN.output.times] == ["at", "ts"]
    assert delay_us(JOIN, left_time_only) == S + (MIN - S)


def test_a_union_is_as_late_as_its_latest_branch() -> None:
    ends = Map("ends", WINDOWS, (("from_", Column("window_end")), ("n", Column("n"))))
    union = Union("u", (input_of(ends), input_of(STARTS)))
    assert delay_us(ends, STARTS, union) == MIN


def test_only_what_leads_to_the_output_counts() -> None:
    assert delay_us(filtered("f", ROWS), JOIN, output="f") == 0
