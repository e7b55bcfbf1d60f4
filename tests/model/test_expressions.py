"""Expressions: their types, their SQL, and how they are taken apart."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.model.expressions import (
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Scalar,
    all_of,
    columns_of,
    condition_sql,
    conjuncts,
    interval_text,
    is_column,
    literal_sql,
    to_sql,
    transform,
    type_of,
    walk,
)
from penstock.model.schema import Schema
from penstock.model.types import STORABLE, DataType

SCHEMA = Schema.parse(
    "i int, l bigint, d double, s string, b boolean, t timestamp, day date, raw binary"
)
NOON = datetime(2024, 2, 29, 12, 30, 0, 5)

LITERALS = [
    (None, DataType.NULL, "NULL"),
    (True, DataType.BOOLEAN, "TRUE"),
    (False, DataType.BOOLEAN, "FALSE"),
    (0, DataType.INT, "0"),
    (2**31 - 1, DataType.INT, "2147483647"),
    (-(2**31), DataType.INT, "-2147483648"),
    (2**31, DataType.BIGINT, "2147483648L"),
    (-(2**63), DataType.BIGINT, "-9223372036854775808L"),
    (2.0, DataType.DOUBLE, "2.0D"),
    (-0.5, DataType.DOUBLE, "-0.5D"),
    (1e300, DataType.DOUBLE, "1e+300D"),
    (float("nan"), DataType.DOUBLE, "double('nan')"),
    (float("inf"), DataType.DOUBLE, "double('inf')"),
    (float("-inf"), DataType.DOUBLE, "double('-inf')"),
    ("", DataType.STRING, "''"),
    ("it's", DataType.STRING, r"'it\'s'"),
    ("a\\b", DataType.STRING, r"'a\\b'"),
    ("\\'", DataType.STRING, r"'\\\''"),
    ("ä\n", DataType.STRING, "'ä\n'"),
    (NOON, DataType.TIMESTAMP, "TIMESTAMP '2024-02-29 12:30:00.000005'"),
    (NOON.replace(tzinfo=UTC), DataType.TIMESTAMP, "TIMESTAMP '2024-02-29 12:30:00.000005'"),
    (
        NOON.replace(tzinfo=timezone(timedelta(hours=2))),
        DataType.TIMESTAMP,
        "TIMESTAMP '2024-02-29 10:30:00.000005'",
    ),
    (datetime(999, 1, 1), DataType.TIMESTAMP, "TIMESTAMP '0999-01-01 00:00:00.000000'"),
    (date(2024, 2, 29), DataType.DATE, "DATE '2024-02-29'"),
    (timedelta(0), DataType.INTERVAL, "INTERVAL '0.000000' SECOND"),
    (timedelta(days=1, microseconds=7), DataType.INTERVAL, "INTERVAL '86400.000007' SECOND"),
    (timedelta(seconds=-1.5), DataType.INTERVAL, "INTERVAL '-1.500000' SECOND"),
]


@pytest.mark.parametrize(("value", "type", "sql"), LITERALS)
def test_literals(value: Scalar, type: DataType, sql: str) -> None:
    assert type_of(Literal(value), SCHEMA) is type
    assert literal_sql(value) == to_sql(Literal(value)) == sql


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_whole_numbers_beyond_64_bits_are_refused(value: int) -> None:
    for use in (lambda: type_of(Literal(value), SCHEMA), lambda: literal_sql(value)):
        with pytest.raises(InputError) as caught:
            use()
        message = f"{value} is too large for a bigint. Write a double, such as 1e20."
        assert str(caught.value) == message


def test_other_things_are_no_constants() -> None:
    with pytest.raises(InputError) as caught:
        type_of(Literal([1]), SCHEMA)  # type: ignore[arg-type]
    hint = "Use a number, a string or a time."
    assert str(caught.value) == f"[1] cannot be a constant. {hint}"
    with pytest.raises(InputError, match=r"^b'x' cannot be a constant$"):
        literal_sql(b"x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(hours=6), "INTERVAL '6' HOUR"),
        (timedelta(minutes=90), "INTERVAL '90' MINUTE"),
        (timedelta(milliseconds=1), "INTERVAL '1' MILLISECOND"),
        (timedelta(0), "INTERVAL '0' SECOND"),
    ],
)
def test_intervals_as_people_write_them(value: timedelta, text: str) -> None:
    assert interval_text(value) == text


CASTS = {
    DataType.BOOLEAN: "boolean int bigint double string",
    DataType.INT: "boolean int bigint double string timestamp",
    DataType.BIGINT: "boolean int bigint double string timestamp",
    DataType.DOUBLE: "boolean int bigint double string timestamp",
    DataType.STRING: "boolean int bigint double string timestamp date binary",
    DataType.TIMESTAMP: "int bigint double string timestamp date",
    DataType.DATE: "string timestamp date",
    DataType.BINARY: "string binary",
    DataType.INTERVAL: "",
    DataType.NULL: "boolean int bigint double string timestamp date binary",
}
"""What Spark 4.3 accepts in TRY_CAST, tried one by one; intervals are ours to refuse."""

VALUES: dict[DataType, Expression] = {
    **{type_of(Column(name), SCHEMA): Column(name) for name in SCHEMA.names},
    DataType.INTERVAL: Literal(timedelta(0)),
    DataType.NULL: Literal(None),
}


@pytest.mark.parametrize("wanted", DataType)
@pytest.mark.parametrize("given", DataType)
def test_casts(given: DataType, wanted: DataType) -> None:
    cast = Cast(VALUES[given], wanted)
    if str(wanted) in CASTS[given].split():
        assert type_of(cast, SCHEMA) is wanted
    else:
        with pytest.raises(InputError, match=f"^a {given} cannot be cast to {wanted}$"):
            type_of(cast, SCHEMA)


def test_a_cast_that_fails_gives_null() -> None:
    assert to_sql(Cast(Column("s"), DataType.INT)) == "TRY_CAST(`s` AS int)"


def test_a_case_has_the_type_its_branches_share() -> None:
    case = Case(((Column("b"), Literal(1)), (Literal(None), Column("d"))), Literal(None))
    assert type_of(case, SCHEMA) is DataType.DOUBLE
    assert to_sql(case) == "CASE WHEN `b` THEN 1 WHEN NULL THEN `d` ELSE NULL END"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            Case(((Column("i"), Literal(1)),), Literal(2)),
            "the condition `i` of a CASE is a int. "
            "It must be true or false; compare it with something.",
        ),
        (
            Case(((Column("b"), Column("s")),), Column("i")),
            "the branches of a CASE are int and string. Cast them to one type.",
        ),
    ],
)
def test_a_case_must_make_sense(case: Case, message: str) -> None:
    with pytest.raises(InputError) as caught:
        type_of(case, SCHEMA)
    assert str(caught.value) == message


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"^no function frobnicate$"):
        Call("frobnicate", ())
    with pytest.raises(InputError, match=r"^no column kwh\. It has i, l, d, s, b, t, day, raw\.$"):
        type_of(Column("kwh"), SCHEMA)
    with pytest.raises(InputError, match=r"^'i' is not an expression$"):
        type_of("i", SCHEMA)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^'i' is not an expression$"):
        to_sql("i")  # type: ignore[arg-type]


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


i, big, d, s, b, t = (Column(name) for name in "ildsbt")


@pytest.mark.parametrize(
    ("expression", "plain", "safe"),
    [
        (call("+", i, big), "(`i` + `l`)", "try_add(`i`, `l`)"),
        (call("+", i, d), "(`i` + `d`)", "(`i` + `d`)"),
        (call("-", i, i), "(`i` - `i`)", "try_subtract(`i`, `i`)"),
        (call("-", t, t), "(`t` - `t`)", "(`t` - `t`)"),
        (call("*", big, big), "(`l` * `l`)", "try_multiply(`l`, `l`)"),
        (call("/", d, d), "(`d` / `d`)", "try_divide(`d`, `d`)"),
        (call("%", d, i), "(`d` % `i`)", "try_mod(`d`, `i`)"),
        (call("negate", i), "(- `i`)", "try_subtract(0, `i`)"),
        (call("negate", d), "(- `d`)", "(- `d`)"),
        (call("abs", big), "abs(`l`)", "if(`l` < 0, try_subtract(0, `l`), `l`)"),
        (call("abs", d), "abs(`d`)", "abs(`d`)"),
        (
            call("floor", d),
            "floor(`d`)",
            "CASE WHEN `d` BETWEEN -9.2E18D AND 9.2E18D THEN floor(`d`) END",
        ),
        (call("ceil", i), "ceil(`i`)", "ceil(`i`)"),
        (call("not", b), "(NOT `b`)", "(NOT `b`)"),
        (call("and", b, b), "(`b` AND `b`)", "(`b` AND `b`)"),
        (call("is_null", s), "(`s` IS NULL)", "(`s` IS NULL)"),
        (call("in", i, Literal(1), Literal(2)), "(`i` IN (1, 2))", "(`i` IN (1, 2))"),
        (call("like", s, Literal("a%")), "(`s` LIKE 'a%')", "(`s` LIKE 'a%')"),
        (
            call("like", s, s),
            "(`s` LIKE `s`)",
            r"CASE WHEN `s` RLIKE r'^[^\\]*+(\\[_%\\][^\\]*+)*+$' THEN `s` LIKE `s` END",
        ),
        (call("round", d, Literal(-1)), "round(`d`, -1)", "round(`d`, -1)"),
        (call("round", i), "round(`i`)", "TRY_CAST(`i` AS int)"),
        (
            call("round", big, Literal(-1)),
            "round(`l`, -1)",
            "TRY_CAST(round(CAST(`l` AS DECIMAL(20, 0)), -1) AS bigint)",
        ),
        (call("if", b, i, d), "if(`b`, `i`, `d`)", "if(`b`, `i`, `d`)"),
        (
            call("+", call("*", i, i), Literal(1)),
            "((`i` * `i`) + 1)",
            "try_add(try_multiply(`i`, `i`), 1)",
        ),
    ],
)
def test_with_a_schema_arithmetic_gives_null_instead_of_an_error(
    expression: Expression, plain: str, safe: str
) -> None:
    assert to_sql(expression) == plain
    assert to_sql(expression, SCHEMA) == safe


def test_columns_are_compared_in_any_case() -> None:
    assert is_column(Column("TS"), "ts")
    assert not is_column(Column("ts2"), "ts")
    assert not is_column(Cast(Column("ts"), DataType.STRING), "ts")


leaves = st.one_of(
    st.sampled_from(SCHEMA.names).map(Column),
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3)).map(Literal),
)


def _branches(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda one, two: Call("and", (one, two)), parts, parts),
        st.builds(lambda one, two: Call("+", (one, two)), parts, parts),
        st.builds(lambda *all: Call("coalesce", all), parts, parts, parts),
        st.builds(Cast, parts, st.sampled_from(STORABLE)),
        st.builds(
            lambda when, then, other: Case(((when, then),), other),
            parts,
            parts,
            parts,
        ),
    )


expressions = st.recursive(leaves, _branches, max_leaves=12)
pure = settings(database=None, deadline=None)


@pure
@given(expression=expressions)
def test_transforming_nothing_changes_nothing(expression: Expression) -> None:
    assert transform(expression, lambda _: None) == expression


@pure
@given(expression=expressions, prefix=st.sampled_from(["l_", "r_"]))
def test_renaming_columns_renames_exactly_those_read(expression: Expression, prefix: str) -> None:
    def renamed(one: Expression) -> Expression | None:
        return Column(prefix + one.name) if isinstance(one, Column) else None

    changed = transform(expression, renamed)
    assert columns_of(changed) == {prefix + name for name in columns_of(expression)}
    # Renaming back gives the same again: nothing else was touched.
    assert transform(changed, lambda one: _shortened(one, prefix)) == expression


def _shortened(one: Expression, prefix: str) -> Expression | None:
    return Column(one.name.removeprefix(prefix)) if isinstance(one, Column) else None


@pure
@given(expression=expressions)
def test_a_replaced_part_is_not_looked_into(expression: Expression) -> None:
    seen = []

    def replace_calls(one: Expression) -> Expression | None:
        seen.append(one)
        return TRUE if isinstance(one, Call) else None

    changed = transform(expression, replace_calls)
    assert not any(isinstance(one, Call) for one in walk(changed))
    assert len(seen) == len(list(walk(changed)))


@pure
@given(expression=expressions)
def test_conjuncts_are_the_parts_between_the_ands(expression: Expression) -> None:
    parts = conjuncts(expression)
    assert not any(isinstance(part, Call) and part.function == "and" for part in parts)
    assert conjuncts(all_of(parts)) == parts
    assert columns_of(all_of(parts)) == columns_of(expression)


@pure
@given(parts=st.lists(leaves).map(tuple))
def test_all_of_parts_has_these_conjuncts(parts: tuple[Expression, ...]) -> None:
    assert conjuncts(all_of(parts)) == (parts or (TRUE,))


@pure
@given(expression=expressions)
def test_equal_expressions_print_the_same_and_different_ones_do_not(expression: Expression) -> None:
    again = transform(expression, lambda _: None)
    assert to_sql(again) == to_sql(expression)
    wrapped = Call("coalesce", (expression, TRUE))
    assert to_sql(wrapped) != to_sql(expression)


def test_a_long_condition_is_no_trouble() -> None:
    parts = tuple(Call("=", (Column("i"), Literal(at))) for at in range(300))
    whole = all_of(parts)
    assert conjuncts(whole) == parts
    assert to_sql(whole, SCHEMA).count("AND") == 299


NULL = Literal(None)


def test_a_null_is_a_condition_as_a_boolean() -> None:
    assert condition_sql(NULL, SCHEMA) == "CAST(NULL AS BOOLEAN)"
    assert condition_sql(Call("not", (NULL,)), SCHEMA) == to_sql(Call("not", (NULL,)), SCHEMA)
    chosen = Case(((NULL, Literal(1)),), Literal(2))
    assert to_sql(chosen, SCHEMA) == "CASE WHEN CAST(NULL AS BOOLEAN) THEN 1 ELSE 2 END"
    assert to_sql(chosen) == "CASE WHEN NULL THEN 1 ELSE 2 END"
