"""Types: their names and what two of them have in common."""

from itertools import product

import pytest

from penstock.errors import InputError
from penstock.model.types import STORABLE, DataType, common_type, data_type


@pytest.mark.parametrize("type", STORABLE)
def test_every_storable_type_is_known_by_its_own_name(type: DataType) -> None:
    assert data_type(str(type)) is type
    assert data_type(f"  {str(type).upper()} ") is type


@pytest.mark.parametrize(
    ("written", "type"),
    [
        ("bool", DataType.BOOLEAN),
        ("integer", DataType.INT),
        ("smallint", DataType.INT),
        ("tinyint", DataType.INT),
        ("long", DataType.BIGINT),
        ("float", DataType.DOUBLE),
        ("real", DataType.DOUBLE),
        ("decimal(10, 2)", DataType.DOUBLE),
        ("text", DataType.STRING),
        ("varchar(10)", DataType.STRING),
        ("varchar (10)", DataType.STRING),
        ("char", DataType.STRING),
        ("datetime", DataType.TIMESTAMP),
        ("bytes", DataType.BINARY),
    ],
)
def test_other_names_are_understood(written: str, type: DataType) -> None:
    assert data_type(written) is type


@pytest.mark.parametrize(
    ("written", "hint"),
    [("doubel", " Did you mean double?"), ("zzz", ""), ("interval", " Did you mean integer?")],
)
def test_unknown_type_lists_the_types(written: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        data_type(written)
    types = "boolean, int, bigint, double, string, timestamp, date, binary"
    assert str(caught.value) == f"no type {written}. The types are {types}.{hint}"


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
