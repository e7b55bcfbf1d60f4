"""The table of cuts: sizes and costs as in the plain transcription, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given

from penstock.bench.plain.cuts import PlainCuts
from penstock.errors import InputError
from penstock.model.devices import Broadcast, DeviceProfile
from penstock.power.cuts import cut_table
from penstock.power.kernels.least import least_entries
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem
from power.problems import problems

DEVICE = DeviceProfile("d1", 1e9, 0.16, 1.0)
SOURCE = ChainSource("s1", 750.0, 3000.0)


def one_query(*operators: ChainOperator, cut: int | None = None, raw: bool = True) -> PowerProblem:
    query = ChainQuery("q1", "s1", ("d1",), operators, cut)
    return PowerProblem(Broadcast("sorted", 125_000.0, raw_cut=raw), (SOURCE,), (DEVICE,), (query,))


@given(problems())
def test_sizes_and_costs_are_those_of_the_formulas(problem: PowerProblem) -> None:
    table, plain = cut_table(problem), PlainCuts(problem)
    sizes = [size for sizes in plain.sizes for size in sizes.values()]
    costs = [cost for costs in plain.processing for cost in costs.values()]
    assert table.sizes == pytest.approx(sizes, rel=1e-12)
    assert table.processing_j == pytest.approx(costs, rel=1e-12, abs=1e-12)
    assert table.cut_numbers(table.starts[:-1]).tolist() == [one.start for one in plain.allowed]


def test_of_equal_cuts_that_nearest_the_root_counts() -> None:
    starts = np.array([0, 3, 5])
    values = np.array([1.0, 1.0 + 1e-14, 2.0, 3.0, 3.0])
    assert least_entries(starts, values).tolist() == [1, 4]


def test_a_join_of_streams_stays_on_the_server() -> None:
    problem = one_query(ChainOperator(1.0), ChainOperator(1.0, kind="join"), ChainOperator(1.0))
    assert list(problem.cuts_of(problem.queries[0])) == [2, 3]
    with pytest.raises(InputError) as caught:
        one_query(ChainOperator(1.0), ChainOperator(1.0, kind="join"), cut=1)
    assert str(caught.value) == (
        "query q1 has the cut 1, which ships operator 2 (join) of query q1 to a device: it joins "
        "another stream, which only the server has. Give a cut of at least 2, or join a table "
        "instead."
    )


def test_a_settled_cut_is_the_only_one() -> None:
    problem = one_query(ChainOperator(1.0, 0.5), ChainOperator(1.0), cut=1)
    assert cut_table(problem).sizes.tolist() == [750 * 0.5 * 3000]


def test_what_cannot_be_cut() -> None:
    with pytest.raises(InputError) as caught:
        one_query(raw=False)
    assert str(caught.value) == (
        "query q1 can only be cut at its source, and raw_cut is false. Give it an operator that "
        "stays on the server, or set raw_cut: true."
    )


def test_numbers_beyond_counting_name_the_operator() -> None:
    with pytest.raises(InputError, match=r"operator 2 of query q1 has more tuples, bytes or cyc"):
        cut_table(one_query(ChainOperator(1.0, 1e200), ChainOperator(1.0, 1e200)))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda: DeviceProfile("d1", 1e9, -0.1, 1.0),
            "device d1 has the processing_power -0.1. Give zero or more.",
        ),
        (
            lambda: DeviceProfile("d1", 1e9, 0.1, float("nan")),
            "device d1 has the receiving_power nan. Give zero or more.",
        ),
        (
            lambda: DeviceProfile("d1", 1e9, 0.1, 1.0, battery_j=0),
            "device d1 has the battery 0. Give more than zero.",
        ),
        (
            lambda: Broadcast("sortd", 1.0),
            "the broadcast has the organisation sortd; there are sorted, indexed, weighted. Did "
            "you mean sorted?",
        ),
        (
            lambda: one_query(ChainOperator(-1.0, name="sum")),
            "operator 1 (sum) of query q1 has the cycles -1. Give zero or more.",
        ),
        (
            lambda: one_query(ChainOperator(1.0, kind="jion")),
            "operator 1 (jion) of query q1 is of kind jion; the kinds are select, project, "
            "aggregate, join-table, join, server, own-table. Did you mean join?",
        ),
        (
            lambda: one_query(ChainOperator(1.0), cut=2),
            "query q1 has the cut 2 and 1 operators. A cut is the number of operators that stay on "
            "the server.",
        ),
        (
            lambda: ChainQuery("q1", "s1", ("d1", "d1"), ()),
            "query q1 names device d1 twice. Remove one.",
        ),
        (
            lambda: ChainQuery("q1", "s1", (), ()),
            "query q1 has no devices. Name who hears its result.",
        ),
    ],
)
def test_nonsense_is_refused_by_name(build: object, text: str) -> None:
    with pytest.raises(InputError) as caught:
        build()  # type: ignore[operator]
    assert str(caught.value) == text
