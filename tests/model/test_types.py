"""Types: their names and what two of them have in common."""

from itertools import product

import pytest

from penstock.errors import InputError
from penstock.model.types import STORABLE, DataType, common_type, data_type


@pytest.mark.parametrize("type", STORABLE)
def test_every_storable_type_is_known_by_its_own_name(type: DataType) -> None:
    assert data_type(str(type)) is type
    assert data_type(f"  {str(type).upper()} ") is type


SAME = {
    "bool": DataType.BOOLEAN,
    "integer": DataType.INT,
    "int4": DataType.INT,
    "long": DataType.BIGINT,
    "double precision": DataType.DOUBLE,
    "float8": DataType.DOUBLE,
    "text": DataType.STRING,
    "varchar": DataType.STRING,
    "datetime": DataType.TIMESTAMP,
    "timestamp_ltz": DataType.TIMESTAMP,
    "timestamptz": DataType.TIMESTAMP,
    "timestamp  with time zone": DataType.TIMESTAMP,
    "bytes": DataType.BINARY,
    "varbinary": DataType.BINARY,
    "blob": DataType.BINARY,
    "bytea": DataType.BINARY,
}


@pytest.mark.parametrize(("written", "type"), SAME.items())
def test_other_names_are_understood(written: str, type: DataType) -> None:
    assert data_type(written) is type


@pytest.mark.parametrize(
    ("written", "hint"),
    [("doubel", " Did you mean double?"), ("zzz", "")],
)
def test_unknown_type_lists_the_types(written: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        data_type(written)
    types = "boolean, int, bigint, double, string, timestamp, date, binary"
    assert str(caught.value) == f"no type {written}. The types are {types}.{hint}"


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("decimal(10, 2)", "Use double, or bigint in the smallest unit, such as cents."),
        ("NUMERIC", "Use double, or bigint in the smallest unit, such as cents."),
        ("tinyint", "Use int, which holds all its values."),
        ("smallint", "Use int, which holds all its values."),
        ("float", "Use double, which holds all its values."),
        ("real", "Use double, which holds all its values."),
        ("varchar(5)", "Use string; substring(value, 1, length) cuts it."),
        ("varchar (5)", "Use string; substring(value, 1, length) cuts it."),
        ("char", "Use string; substring(value, 1, length) cuts it."),
        (
            "timestamp(3)",
            "Times have microseconds: write timestamp; date_trunc makes them coarser.",
        ),
        ("timestamp_ntz", "Use timestamp: times are UTC."),
        ("int(3)", "Write int."),
        ("int8", "It has 8 bytes in some systems and 8 bits in others: write bigint or int."),
        ("uuid", "Use string."),
    ],
)
def test_what_would_change_values_is_refused_by_name(written: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        data_type(written)
    assert str(caught.value) == f"the type {written.lower()} is not supported. {hint}"


@pytest.mark.parametrize("type", [DataType.INTERVAL, DataType.NULL])
def test_types_of_expressions_only_cannot_be_stored(type: DataType) -> None:
    assert not type.is_storable
    assert type not in STORABLE


def test_common_type_does_not_depend_on_the_order() -> None:
    for one, other in product(DataType, DataType):
        assert common_type(one, other) is common_type(other, one), (one, other)


@pytest.mark.parametrize("type", DataType)
def test_a_type_has_itself_in_common_with_itself_and_with_null(type: DataType) -> None:
    assert common_type(type, type) is type
    assert common_type(type, DataType.NULL) is type


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (DataType.INT, DataType.BIGINT, DataType.BIGINT),
        (DataType.INT, DataType.DOUBLE, DataType.DOUBLE),
        (DataType.BIGINT, DataType.DOUBLE, DataType.DOUBLE),
        (DataType.DATE, DataType.TIMESTAMP, DataType.TIMESTAMP),
        (DataType.INT, DataType.STRING, None),
        (DataType.INT, DataType.BOOLEAN, None),
        (DataType.STRING, DataType.TIMESTAMP, None),
        (DataType.STRING, DataType.BINARY, None),
        (DataType.TIMESTAMP, DataType.INTERVAL, None),
    ],
)
def test_common_types(one: DataType, other: DataType, both: DataType | None) -> None:
    assert common_type(one, other) is both


def test_common_type_of_three_does_not_depend_on_the_grouping() -> None:
    def both(first: DataType | None, second: DataType | None) -> DataType | None:
        return None if first is None or second is None else common_type(first, second)

    for one, two, three in product(DataType, repeat=3):
        grouped = both(both(one, two), three), both(one, both(two, three))
        assert grouped[0] is grouped[1], (one, two, three)
