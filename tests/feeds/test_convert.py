"""Text to typed columns: every type, good and bad, alone and among others."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws import tried
from penstock.feeds.arrow import ARROW_TYPES
from penstock.feeds.convert import Converted, convert_text
from penstock.model.schema import Field
from penstock.model.types import STORABLE, DataType


def converted(type: DataType, *values: str | None) -> Converted:
    return convert_text(pa.array(values, pa.string()), Field("x", type))


def moment(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


GOOD: list[tuple[DataType, str, object]] = [
    (DataType.BOOLEAN, "true", True),
    (DataType.BOOLEAN, "FALSE", False),
    (DataType.BOOLEAN, " 1 ", True),
    (DataType.BOOLEAN, "0", False),
    (DataType.INT, "42", 42),
    (DataType.INT, " -7 ", -7),
    (DataType.INT, "+7", 7),
    (DataType.INT, "007", 7),
    (DataType.INT, "2147483647", 2**31 - 1),
    (DataType.BIGINT, "-9223372036854775808", -(2**63)),
    (DataType.DOUBLE, "1.5", 1.5),
    (DataType.DOUBLE, "-.5e-3", -0.0005),
    (DataType.DOUBLE, "3", 3.0),
    (DataType.DOUBLE, "inf", float("inf")),
    (DataType.STRING, " as it is ", " as it is "),
    (DataType.STRING, "", ""),
    (DataType.DATE, "2024-02-29", date(2024, 2, 29)),
    (DataType.BINARY, "aä", "aä".encode()),
    (DataType.TIMESTAMP, "2024-02-29", moment(2024, 2, 29)),
    (DataType.TIMESTAMP, "2024-02-29 10:11", moment(2024, 2, 29, 10, 11)),
    (DataType.TIMESTAMP, "2024-02-29T10:11", moment(2024, 2, 29, 10, 11)),
    (DataType.TIMESTAMP, "2024-02-29T10:11Z", moment(2024, 2, 29, 10, 11)),
    (DataType.TIMESTAMP, "2024-02-29 10:11:12", moment(2024, 2, 29, 10, 11, 12)),
    (DataType.TIMESTAMP, "2024-02-29T10:11:12Z", moment(2024, 2, 29, 10, 11, 12)),
    (DataType.TIMESTAMP, "2024-02-29 10:11:12.5", moment(2024, 2, 29, 10, 11, 12, 500_000)),
    (DataType.TIMESTAMP, "2024-02-29 10:11:12.000007", moment(2024, 2, 29, 10, 11, 12, 7)),
    (DataType.TIMESTAMP, "2024-02-29 10:11:12.1234567", moment(2024, 2, 29, 10, 11, 12, 123_456)),
    (DataType.TIMESTAMP, "2024-02-29T10:11:12+02:00", moment(2024, 2, 29, 8, 11, 12)),
    (DataType.TIMESTAMP, "2024-02-29T10:11:12-0230", moment(2024, 2, 29, 12, 41, 12)),
    (DataType.TIMESTAMP, "2024-02-29T23:30+02", moment(2024, 2, 29, 21, 30)),
    (DataType.TIMESTAMP, "0001-01-01", moment(1, 1, 1)),
    (DataType.TIMESTAMP, "9999-12-31 23:59:59.999999", moment(9999, 12, 31, 23, 59, 59, 999_999)),
    (DataType.TIMESTAMP, "0", moment(1970, 1, 1)),
    (DataType.TIMESTAMP, "1521911720", moment(2018, 3, 24, 17, 15, 20)),
    (DataType.TIMESTAMP, "1521911720.865716", moment(2018, 3, 24, 17, 15, 20, 865_716)),
    (DataType.TIMESTAMP, "-1.5", moment(1969, 12, 31, 23, 59, 58, 500_000)),
    (DataType.TIMESTAMP, "1e9", moment(2001, 9, 9, 1, 46, 40)),
    (DataType.TIMESTAMP, "-11670912000.000001", moment(1600, 2, 29, 23, 59, 59, 999_999)),
    (DataType.TIMESTAMP, "-62135596800", moment(1, 1, 1)),
    (DataType.TIMESTAMP, "253402300799.999999", moment(9999, 12, 31, 23, 59, 59, 999_999)),
]

BAD: list[tuple[DataType, str]] = [
    *((DataType.BOOLEAN, one) for one in ("yes", "t", "2", "")),
    *((DataType.INT, one) for one in ("x", "1.0", "1e3", "0x10", "1_000", "", "2147483648", "٣")),
    *((DataType.BIGINT, one) for one in ("9223372036854775808", "0XFF", "--1")),
    *((DataType.DOUBLE, one) for one in ("x", "1,5", "1_0", "", "0x10", "1d")),
    *(
        (DataType.DATE, one)
        for one in ("2024-02-30", "29.2.2024", "2024-02-29 00:00:00", "0000-01-01", "")
    ),
    *(
        (DataType.TIMESTAMP, one)
        for one in (
            *("x", "", "2024-02-30", "2024-02-29 25:00", "2024-02-29 10:11:61", "10:11:12"),
            *("29.2.2024", "2024-02-29x10:11:12", "2024-02-29 10:11:12 PM", "nan", "inf"),
            # Milliseconds would be the year 50197; whoever sees the reject will know.
            *("1521911720865", "-99999999999999", "0000-01-01", "10000-01-01"),
            *("9999-12-31 23:59:59-02:00", "0001-01-01 00:00+02:00"),
        )
    ),
]


@pytest.mark.parametrize(("type", "text", "value"), GOOD)
def test_good_values(type: DataType, text: str, value: object) -> None:
    result = converted(type, text)
    assert result.values.to_pylist() == [value]
    assert result.bad.tolist() == [False]


@pytest.mark.parametrize(("type", "text"), BAD)
def test_bad_values_are_null_and_said_to_be_bad(type: DataType, text: str) -> None:
    result = converted(type, text)
    assert result.values.to_pylist() == [None]
    assert result.bad.tolist() == [True]


@pytest.mark.parametrize("type", STORABLE)
def test_every_good_value_is_the_same_among_bad_ones(type: DataType) -> None:
    good = [(text, value) for one, text, value in GOOD if one is type]
    bad = [text for one, text in BAD if one is type]
    result = converted(type, *(text for text, _ in good), *bad, None)
    assert result.values.to_pylist() == [value for _, value in good] + [None] * (len(bad) + 1)
    assert result.bad.tolist() == [False] * len(good) + [True] * len(bad) + [False]


@pytest.mark.parametrize("type", STORABLE)
def test_missing_values_are_null_and_not_bad(type: DataType) -> None:
    for values in ((), (None,), (None, None)):
        result = converted(type, *values)
        assert result.values.type == ARROW_TYPES[type]
        assert result.values.to_pylist() == list(values)
        assert not result.bad.any()


def test_not_a_number_is_a_number() -> None:
    (value,) = converted(DataType.DOUBLE, "NaN").values.to_pylist()
    assert value != value


# Pieces of what people write, put together in any way.
fragments = st.sampled_from(
    [
        *("", " ", "0", "1", "9", "24", "-", "+", ".", "e", "x", "_", ":", "T", "Z", "true"),
        *("nan", "inf", "2024-02-29", "2024-02-30", "10:11:12", "+02:00"),
        *("1521911720", "0x", "99999999999"),
    ]
)
texts = st.one_of(
    st.none(),
    st.lists(fragments, max_size=4).map("".join),
    st.sampled_from([text for _, text, _ in GOOD] + [text for _, text in BAD]),
)


@tried(60)
@given(type=st.sampled_from(STORABLE), values=st.lists(texts, max_size=8))
def test_a_value_does_not_depend_on_its_neighbours(
    type: DataType, values: list[str | None]
) -> None:
    together = converted(type, *values)
    alone = [converted(type, value) for value in values]
    assert [_comparable(one) for one in together.values.to_pylist()] == [
        _comparable(one.values[0].as_py()) for one in alone
    ]
    assert together.bad.tolist() == [bool(one.bad[0]) for one in alone]


def _comparable(value: object) -> object:
    return "nan" if value != value else value


@settings(database=None, deadline=None)
@given(
    moments=st.lists(
        st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)), min_size=1, max_size=5
    ),
    hours=st.integers(-23, 23),
    separator=st.sampled_from("T "),
)
def test_iso_timestamps_read_back(moments: list[datetime], hours: int, separator: str) -> None:
    wanted = [one.replace(tzinfo=UTC) for one in moments]
    plain = [one.isoformat(separator) for one in moments]
    shifted = [one + timedelta(hours=hours) for one in moments]
    zoned = [f"{one.isoformat(separator)}{hours:+03d}:00" for one in shifted]
    for written in (plain, zoned, [*plain, *zoned]):
        result = converted(DataType.TIMESTAMP, *written).values.to_pylist()
        assert result == wanted * (len(written) // len(wanted))
