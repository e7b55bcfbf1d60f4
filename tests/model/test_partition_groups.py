"""Partition groups: which there can be, and how people name some of them."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.model.network import Network, Query
from penstock.model.partition_groups import PartitionGroups
from penstock.model.schema import Schema, Shape
from penstock.model.sources import GeneratorSource, Stream

EIGHT = PartitionGroups(("home",), 8)
SCHEMA = Schema.parse("home string, n bigint, ok boolean, kwh double, at timestamp")


@pytest.mark.parametrize(
    ("written", "groups"),
    [("3", {3}), ("0-2,7", {0, 1, 2, 7}), (" 1 - 1 , 1", {1}), ("0-7", set(range(8)))],
)
def test_named(written: str, groups: set[int]) -> None:
    assert EIGHT.named(written) == groups


@pytest.mark.parametrize("written", ["", "8", "2-1", "0-8", "a", "1,,2", "-1", "1-2-3", "9" * 99])
def test_what_names_no_groups(written: str) -> None:
    with pytest.raises(InputError, match=r"names no groups.*groups 0 to 7"):
        EIGHT.named(written)


@pytest.mark.parametrize("count", [-1, 0, 1_025])
def test_too_few_or_too_many(count: int) -> None:
    with pytest.raises(InputError, match=rf"cannot be {count} groups.*1 to 1024"):
        PartitionGroups(("home",), count)


def test_by_nothing() -> None:
    with pytest.raises(InputError, match="need a column"):
        PartitionGroups((), 8)


def test_keys_are_columns_with_one_text_each() -> None:
    PartitionGroups(("HOME", "n", "ok"), 8).check(SCHEMA)
    for key in ("kwh", "at"):
        with pytest.raises(InputError, match=rf"cannot be grouped by {key}.*string, int, bigint"):
            PartitionGroups((key,), 8).check(SCHEMA)
    with pytest.raises(InputError, match=r"no column hom.*Did you mean home"):
        PartitionGroups(("hom",), 8).check(SCHEMA)


def network(*groups: PartitionGroups | None) -> Network:
    stream = Stream("readings", GeneratorSource("meters"), Shape(SCHEMA))
    queries = (Query(f"q{at}", "readings", groups=one) for at, one in enumerate(groups))
    return Network((stream,), (), tuple(queries))


def test_a_stream_has_the_groups_of_a_query() -> None:
    assert network().groups("readings") is None
    assert network(None).groups("readings") is None
    assert network(None, EIGHT, EIGHT).groups("readings") == EIGHT


def test_columns_may_be_written_in_any_case() -> None:
    assert network(PartitionGroups(("HOME",), 8)).groups("readings") == EIGHT


def test_two_queries_do_not_group_the_same_rows_differently() -> None:
    with pytest.raises(InputError, match="q1 and q0 group the same rows differently"):
        network(EIGHT, PartitionGroups(("home",), 9))


def test_a_query_cannot_be_grouped_by_what_it_does_not_have() -> None:
    with pytest.raises(InputError, match="no column district"):
        network(PartitionGroups(("district",), 9))
