"""The bench of planning measures what it says."""

from penstock.bench.placement import best_s, chains, numpy_pass
from penstock.bench.plain_rod import plain_rod
from penstock.bench.registry import BENCHES
from penstock.place.rod import rod


def test_it_is_known() -> None:
    assert "placement" in BENCHES


def test_both_sides_do_the_same_work() -> None:
    problem = chains(200, 8)
    assert rod(problem).tolist() == plain_rod(problem)
    assert numpy_pass(problem) == problem.rows[-1, 0]


def test_the_best_of_several() -> None:
    calls: list[int] = []
    assert best_s(lambda: calls.append(1), 3) >= 0
    assert len(calls) == 3
