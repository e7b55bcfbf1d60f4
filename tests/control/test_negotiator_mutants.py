"""What is said of a live node's part is enough to notice whatever is wrong with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from control import test_negotiator
from control.negotiator_mutants import MUTANTS
from penstock.control.negotiator import Negotiator


def laws() -> Iterator[Callable[[], None]]:
    """The tests of a negotiator, to be run with another one."""
    for name, test in vars(test_negotiator).items():
        if name.startswith("test_") and not inspect.signature(test).parameters:
            yield test
    for refusal in test_negotiator.REFUSALS:
        yield partial(test_negotiator.test_what_it_refuses, *refusal)


def is_broken(law: Callable[[], None]) -> bool:
    try:
        law()
    except (AssertionError, ValueError, LookupError):
        return True  # It does more, or less, than what is unpacked or looked at.
    return False


def test_the_sound_one_breaks_no_law() -> None:
    assert len([*laws()]) > 15
    assert not any(is_broken(law) for law in laws())


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.__name__ for mutant in MUTANTS])
def test_every_mutant_is_caught(mutant: type[Negotiator], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_negotiator, "Negotiator", mutant)
    assert any(is_broken(law) for law in laws())
