"""What can be joined, and what people are told about what cannot."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kernels.window_join.streams import TS, side, terms_of
from penstock.errors import InputError
from penstock.kernels.window_join import JoinSide, JoinTerms
from penstock.kernels.window_join.hashing import comparable_type, hash_keys
from penstock.model.windows import TimeBound

BOUND = TimeBound(-1, 1)


def test_missing_columns() -> None:
    with pytest.raises(InputError, match=r"no column hom to join; there are ts, home.*mean home"):
        JoinSide(pa.schema([("ts", TS), ("home", pa.string())]), ("hom",), "ts")
    with pytest.raises(InputError, match="event time home of a join is of type string"):
        JoinSide(pa.schema([("home", pa.string())]), (), "home")


def test_sides_that_do_not_fit() -> None:
    left = side("l", [pa.int64()])
    with pytest.raises(InputError, match="both sides of a join have l_k0, l_n, l_ts"):
        JoinTerms(left, JoinSide(left.schema, left.keys, left.time), BOUND)
    with pytest.raises(InputError, match="1 keys are joined with 2"):
        JoinTerms(left, side("r", [pa.int64()] * 2), BOUND)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.string(), pa.int64()),
        (pa.timestamp("us", "UTC"), pa.date32()),
        (pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.decimal128(10, 2), pa.decimal128(10, 2)),
    ],
)
def test_keys_that_cannot_be_compared(left: pa.DataType, right: pa.DataType) -> None:
    with pytest.raises(InputError, match=r"cannot be joined by a key of type.*of one type"):
        comparable_type(left, right)


def test_groups_need_keys_with_one_text_each() -> None:
    terms_of([pa.int32(), pa.string(), pa.bool_()], BOUND, groups=60)
    for type in (pa.float64(), pa.date32()):
        with pytest.raises(InputError, match="cannot be grouped by l_k0"):
            terms_of([type], BOUND, groups=60)
    with pytest.raises(InputError, match="groups need a column"):
        terms_of([], BOUND, groups=60)


def test_only_what_is_wanted_is_kept() -> None:
    left = JoinSide(side("l", [pa.int64()]).schema, ("l_k0",), "l_ts", wanted=("l_n",))
    terms = JoinTerms(left, side("r", [pa.int64()]), BOUND)
    assert terms.schema.names == ["l_n", "r_ts", "r_k0", "r_n"]
    assert terms.layout(left).columns == ("l_n", "l_k0", "l_ts")


def test_hashes_depend_on_values_alone() -> None:
    """Slices, chunks, kinds of strings and widths of integers change nothing."""
    texts = ["", "a", "ab", "12345678", "123456789", "ä" * 9, None]
    whole = hash_keys([pa.array(texts)], 7)[0]
    sliced = hash_keys([pa.array(["pad", *texts]).slice(1)], 7)[0]
    large = hash_keys([pa.array(texts, pa.large_string())], 7)[0]
    assert whole[:6].tolist() == sliced[:6].tolist() == large[:6].tolist()
    assert len(set(whole.tolist())) == 6, "null is as good as empty: it is never looked at"
    assert hash_keys([pa.array([None, None], pa.string())], 2)[1].tolist() == [False, False]
    one, other = pa.array(["a"]), pa.array(["b"])
    assert hash_keys([one, other], 1)[0] != hash_keys([other, one], 1)[0]
