"""Runners: results in order, the same however many processes there are."""

import math

import pytest

from penstock.studies.running import Processes, one_by_one
from penstock.studies.seeds import rng_of


def noisy(point: tuple[str, int]) -> float:
    return float(rng_of(point[0], point[1]).normal(size=100).sum())


def failing(point: int) -> float:
    return 1.0 / point


def test_processes_change_nothing() -> None:
    points = [("a", number) for number in range(5)]
    said: list[str] = []
    alone = one_by_one(noisy, points, said.append)
    assert said[-1] == "point 5 of 5"
    said.clear()
    assert Processes(2)(noisy, points, said.append) == alone
    assert sorted(said) == [f"point {number} of 5" for number in range(1, 6)]


def test_a_failure_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        Processes(1)(failing, [1, 0], lambda what: None)


def test_no_points() -> None:
    assert Processes(2)(math.sqrt, [], print) == []
