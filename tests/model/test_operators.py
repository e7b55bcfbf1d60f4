"""Operators: what they refuse, and the shape of what they give."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from model.samples import DATABASE, HOMES, MIN, READINGS, S, counted, filtered, more, read, shape_of
from penstock.errors import InputError
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Call, Cast, Column, Literal
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    SqlRead,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.schema import Schema, Shape, TimeColumn
from penstock.model.sources import Table
from penstock.model.types import DataType
from penstock.model.windows import SessionWindow, TimeBound, Window

ROWS = read("readings")
UNTIMED = read("notes", "home string, note string", None)
UNMARKED = Input("raw", shape_of(READINGS, "ts", watermarked=False))
OFFERS = read("offers", "at timestamp, house string, cents int", "at")
HOMES_IN_DATABASE = Table("homes", HOMES.schema, database=DATABASE)
KWH, TS = Column("kwh"), Column("ts")


def joined(lower_us: int, upper_us: int, **other: object) -> WindowJoin:
    bound = TimeBound(lower_us, upper_us)
    given: dict[str, object] = {"left": ROWS, "right": OFFERS, "equal": (("home", "house"),)}
    return WindowJoin("j", bound=bound, **(given | other))  # type: ignore[arg-type]


def looked_up(**other: object) -> TableJoin:
    given: dict[str, object] = {"equal": (("home", "home"),), "columns": (("area", "area"),)}
    return TableJoin("t", ROWS, HOMES, **(given | other))  # type: ignore[arg-type]


NO_TIME = (
    "needs an event time, and notes has none. Name a timestamp column with event_time in the "
    "stream, or keep the event-time column in the query it comes from."
)
NO_WATERMARK = (
    "needs a watermark, and raw has none. "
    "Say how far rows may be out of order, for example lateness: 2min."
)

REFUSED: list[tuple[Callable[[], Operator], str]] = [
    (
        lambda: Filter("not ok", ROWS, more("kwh", 1)),
        "'not ok' cannot name a operator. "
        "Use letters, digits and underscores, starting with a letter.",
    ),
    (
        lambda: Filter("f", ROWS, KWH),
        "the condition `kwh` is a double, not true or false. "
        "Compare it with something, for example … > 0.",
    ),
    (
        lambda: Filter("f", ROWS, more("kw", 1)),
        "no column kw. It has ts, home, kwh, meter. Did you mean kwh?",
    ),
    (
        lambda: Switch("s", ROWS, ()),
        "switch s has the cases none. Give at least one case, each with its own name.",
    ),
    (
        lambda: Switch("s", ROWS, (("a", more("kwh", 1)), ("a", more("kwh", 2)))),
        "switch s has the cases a, a. Give at least one case, each with its own name.",
    ),
    (
        lambda: Switch("s", ROWS, (("a", KWH),)),
        "the condition `kwh` is a double, not true or false. "
        "Compare it with something, for example … > 0.",
    ),
    (lambda: Map("m", ROWS, ()), "a schema without columns. Name at least one column."),
    (
        lambda: Map("m", ROWS, (("a", KWH), ("A", TS))),
        "two columns are called A. Rename one with AS.",
    ),
    (
        lambda: Map("m", ROWS, (("gap", Call("-", (TS, TS))),)),
        "column gap cannot have the type interval. The time between two is a number as "
        "unix_micros(one) - unix_micros(other).",
    ),
    (
        lambda: Map("m", ROWS, (("x", Call("+", (KWH, Column("home")))),)),
        "+ takes two numbers, or a timestamp and an interval; it got double, string",
    ),
    (lambda: Union("u", (ROWS,)), "union u of 1 streams needs two"),
    (
        lambda: Union("u", (UNTIMED, OFFERS)),
        "a union of notes (home string, note string) and "
        "offers (at timestamp, house string, cents int). "
        "Select as many columns of the same types on both sides.",
    ),
    (
        lambda: Union("u", (read("a", "x int", None), read("b", "x string", None))),
        "a union of a (x int) and b (x string). "
        "Select as many columns of the same types on both sides.",
    ),
    (lambda: counted("a", UNTIMED), f"a window over notes {NO_TIME}"),
    (lambda: counted("a", UNMARKED), f"a window over raw {NO_WATERMARK}"),
    (
        lambda: Aggregate("a", ROWS, Window.of(S), (("window_end", KWH),), ()),
        "two columns are called window_end. Rename one with AS.",
    ),
    (
        lambda: Aggregate(
            "a", ROWS, Window.of(S), (), (("x", AggregateCall("sum", (Column("home"),))),)
        ),
        "sum takes a number; it got a string",
    ),
    (lambda: joined(0, S, left=UNTIMED), f"a join over notes {NO_TIME}"),
    (lambda: joined(0, S, right=UNMARKED), f"a join over raw {NO_WATERMARK}"),
    (
        lambda: joined(0, S, equal=(("home", "cents"),)),
        "a join compares home, a string, with cents, a int. Cast one of them.",
    ),
    (lambda: joined(0, S, right=ROWS, equal=()), "two columns are called ts. Rename one with AS."),
    (
        lambda: joined(0, S, condition=Call("+", (KWH, Column("cents")))),
        "the condition (`kwh` + `cents`) is a double, not true or false. "
        "Compare it with something, for example … > 0.",
    ),
    (
        lambda: looked_up(equal=()),
        "the join with table homes compares no columns. "
        "Say which are equal: ON stream.column = table.column.",
    ),
    (
        lambda: looked_up(equal=(("kwh", "home"),)),
        "a join compares kwh, a double, with home, a string. Cast one of them.",
    ),
    (
        lambda: looked_up(columns=(("area", "street"),)),
        "no column street. It has home, area.",
    ),
    (
        lambda: looked_up(columns=(("home", "area"),)),
        "two columns are called home. Rename one with AS.",
    ),
    (
        lambda: SqlWrite("w", ROWS, DATABASE, "a;b"),
        "'a;b' cannot name a database table. "
        "Use letters, digits and underscores, starting with a letter.",
    ),
    *(
        (
            lambda name=name: PythonOperator("p", ROWS, name, ROWS.schema),  # type: ignore[misc]
            f"{name!r} names no function. Write module:function, for example cleaning:drop_spikes.",
        )
        for name in ("cleaning", "cleaning:", ":drop", "")
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_refused(build: Callable[[], Operator], message: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value) == message


def test_only_operators_that_remember_have_state() -> None:
    def kinds(trait: str) -> set[str]:
        operators = (Filter, Switch, Map, Union, Aggregate, WindowJoin)
        others = (TableJoin, SqlRead, SqlWrite, PythonOperator)
        return {operator.kind for operator in (*operators, *others) if getattr(operator, trait)}

    assert kinds("stateful") == {"aggregate", "join"}
    assert kinds("opaque") == {"sql_read", "python"}
    assert kinds("movable") == {
        *("filter", "switch", "map", "union", "aggregate", "join", "table_join", "python")
    }


def test_a_filter_gives_what_it_takes() -> None:
    keep = filtered("f", ROWS)
    assert keep.outputs == {"f": ROWS.shape}
    assert keep.delay_us == 0
    assert keep.details == "(`kwh` > 1.0D)"
    assert Filter("f", ROWS, Literal(None)).output == ROWS.shape


def test_a_switch_gives_one_stream_a_case() -> None:
    switch = Switch("s", ROWS, (("high", more("kwh", 5)), ("low", Literal(True))))
    assert switch.outputs == {"s_high": ROWS.shape, "s_low": ROWS.shape}
    assert switch.details == "high: (`kwh` > 5); low: TRUE"


def mapped(*columns: tuple[str, object], input: Input = ROWS) -> Map:
    return Map("m", input, columns)  # type: ignore[arg-type]


def test_a_map_gives_its_columns() -> None:
    halved = Call("/", (KWH, Literal(2)))
    result = mapped(("ts", TS), ("half", halved), ("nothing", Literal(None)))
    assert str(result.output) == "ts timestamp, half double, nothing string; event time ts"
    assert result.details == "ts, (`kwh` / 2) AS half, NULL AS nothing"


@pytest.mark.parametrize(
    ("columns", "times"),
    [
        ((("ts", TS),), (TimeColumn("ts"),)),
        ((("t", TS), ("kwh", KWH)), (TimeColumn("t"),)),
        ((("t", Column("TS")),), (TimeColumn("t"),)),
        ((("a", TS), ("b", TS)), (TimeColumn("a"), TimeColumn("b"))),
        ((("kwh", KWH),), ()),
        ((("ts", Call("+", (TS, Literal(None)))),), None),
        ((("ts", Cast(TS, DataType.TIMESTAMP)),), ()),
        ((("ts", Call("date_trunc", (Literal("hour"), TS))),), ()),
        ((("ts", KWH), ("kwh", TS)), (TimeColumn("kwh"),)),
    ],
)
def test_only_an_event_time_passed_on_as_it_is_stays_one(
    columns: tuple[tuple[str, object], ...], times: tuple[TimeColumn, ...] | None
) -> None:
    if times is None:
        with pytest.raises(InputError):
            mapped(*columns)
    else:
        assert mapped(*columns).output.times == times
        assert mapped(*columns).delay_us == 0


def test_a_map_that_keeps_only_a_later_time_is_behind_by_the_difference() -> None:
    windows = Input("a", counted("a", ROWS, Window.of(MIN)).output)
    start, end = Column("window_start"), Column("window_end")
    both = mapped(("from_", start), ("to_", end), input=windows)
    assert both.output.times == (TimeColumn("to_"), TimeColumn("from_", MIN))
    assert both.delay_us == 0
    late = mapped(("from_", start), input=windows)
    assert late.output.times == (TimeColumn("from_"),)
    assert late.delay_us == MIN


def test_a_map_over_unmarked_rows_is_unmarked() -> None:
    assert not mapped(("ts", TS), input=UNMARKED).output.watermarked


def test_a_union_has_the_first_names_and_the_widest_types() -> None:
    one = read("a", "ts timestamp, x int", "ts")
    two = read("b", "at timestamp, y double", "at")
    three = read("c", "when timestamp, z bigint", "when")
    union = Union("u", (one, two, three))
    assert str(union.output) == "ts timestamp, x double; event time ts"
    assert union.inputs == (one, two, three)


@pytest.mark.parametrize(
    "other",
    [
        read("b", "b timestamp, a timestamp", "a"),
        read("b", "a timestamp, b timestamp", None),
    ],
)
def test_a_union_has_an_event_time_only_where_all_have_it(other: Input) -> None:
    union = Union("u", (read("a", "a timestamp, b timestamp", "a"), other))
    assert union.output.times == ()


def test_a_union_is_marked_only_if_all_are() -> None:
    assert Union("u", (ROWS, ROWS)).output.watermarked
    assert not Union("u", (ROWS, UNMARKED)).output.watermarked


def test_a_union_promises_nothing_about_other_times() -> None:
    windows = Input("a", counted("a", ROWS).output)
    assert Union("u", (windows, windows)).output.times == (TimeColumn("window_end"),)


def test_an_aggregate_gives_keys_bounds_and_results() -> None:
    keys = (("home", Column("home")), ("nothing", Literal(None)))
    results = (("n", AggregateCall("count")), ("total", AggregateCall("sum", (Column("meter"),))))
    aggregate = Aggregate("a", ROWS, Window.of(MIN, 15 * S), keys, results)
    assert str(aggregate.output.schema) == (
        "home string, nothing string, window_start timestamp, window_end timestamp, "
        "n bigint, total bigint"
    )
    assert aggregate.details == (
        "count(*) AS n, sum(`meter`) AS total by home, nothing, 1 minute every 15 seconds"
    )


def test_the_start_of_a_window_is_behind_its_end_by_its_size() -> None:
    aggregate = counted("a", ROWS, Window.of(MIN, S))
    assert aggregate.output.times == (TimeColumn("window_end"), TimeColumn("window_start", MIN))
    assert aggregate.delay_us == 0


def test_nothing_is_known_about_how_long_a_session_is() -> None:
    aggregate = replace(counted("a", ROWS), window=SessionWindow(S))
    assert aggregate.output.times == (TimeColumn("window_end"),)


LEFT_SLACK = 2_000


@pytest.mark.parametrize(
    ("lower_us", "upper_us", "times", "delay_us"),
    [
        (0, 0, (("ts", 0), ("at", 0)), 0),
        (-S, S, (("ts", 0), ("at", 0)), S),
        (0, MIN, (("at", 0), ("ts", MIN)), 0),
        (-MIN, 0, (("ts", 0), ("at", MIN)), 0),
        (-S, MIN, (("at", 0), ("ts", MIN - S)), S),
        (S, MIN, (("at", 0), ("ts", MIN)), 0),
        (-MIN, -S, (("ts", 0), ("at", MIN)), 0),
    ],
)
def test_times_of_an_inner_join(
    lower_us: int, upper_us: int, times: tuple[tuple[str, int], ...], delay_us: int
) -> None:
    join = joined(lower_us, upper_us)
    assert join.output.times == tuple(TimeColumn(*time) for time in times)
    assert join.delay_us == delay_us


@pytest.mark.parametrize(
    ("lower_us", "upper_us", "delay_us"),
    [(0, 0, 0), (-S, S, S), (S, MIN, MIN), (-MIN, -S, 0)],
)
def test_a_left_join_promises_only_the_left_time(
    lower_us: int, upper_us: int, delay_us: int
) -> None:
    join = joined(lower_us, upper_us, join="left")
    assert join.output.times == (TimeColumn("ts"),)
    assert join.delay_us == delay_us + LEFT_SLACK


def test_a_join_gives_the_columns_of_both_sides() -> None:
    join = joined(0, S, condition=Call(">", (KWH, Column("cents"))))
    assert str(join.output.schema) == f"{READINGS}, at timestamp, house string, cents int"
    assert join.details == "inner on home = house, right in left +0 seconds .. +1 second"
    assert joined(0, S, equal=()).details.startswith("inner on nothing, ")


def test_a_join_may_compare_different_numbers() -> None:
    assert joined(0, S, equal=(("kwh", "cents"),)).equal == (("kwh", "cents"),)


def test_a_table_join_adds_columns_and_keeps_the_time() -> None:
    join = looked_up(columns=(("where_", "area"),), join="left")
    assert str(join.output) == f"{READINGS}, where_ string; event time ts"
    assert join.details == "left with homes on home = homes.home"


def test_a_database_lookup_knows_its_database() -> None:
    columns = (("area", "area"),)
    lookup = SqlRead("r", ROWS, HOMES_IN_DATABASE, (("home", "home"),), columns)
    assert lookup.database == DATABASE
    assert lookup.output == looked_up().output


def test_a_database_write_passes_rows_on() -> None:
    write = SqlWrite("w", ROWS, DATABASE, "readings")
    assert write.output == ROWS.shape
    assert write.details == "into readings of sqlite:///ami.db"


@pytest.mark.parametrize(
    ("columns", "event_time"),
    [
        (READINGS, "ts"),
        ("kwh double, TS timestamp", "TS"),
        ("kwh double", None),
        ("ts string", None),
    ],
)
def test_a_python_function_keeps_the_event_time_if_it_gives_it(
    columns: str, event_time: str | None
) -> None:
    operator = PythonOperator("p", ROWS, "cleaning:drop_spikes", Schema.parse(columns))
    assert operator.output.event_time == event_time
    assert operator.details == "cleaning:drop_spikes"


def test_a_python_function_over_unmarked_rows_is_unmarked() -> None:
    operator = PythonOperator("p", UNMARKED, "cleaning:drop_spikes", UNMARKED.schema)
    assert not operator.output.watermarked


def test_shapes_differ_in_nothing_but_what_they_say() -> None:
    assert filtered("f", ROWS) == filtered("f", read("readings"))
    assert filtered("f", ROWS) != filtered("g", ROWS)
    assert Shape(ROWS.schema) != ROWS.shape
