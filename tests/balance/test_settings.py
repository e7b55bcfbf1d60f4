"""Settings of balancing: what people write, what is wrong with it, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.balance.guards import Guards
from penstock.balance.planning_scope import PlanningScope
from penstock.balance.settings import KEYS, BalanceSettings, balance_words
from penstock.balance.situation import Thresholds
from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment
from penstock.model.settings import settings_of

FILE = "streams:\n  readings: {source: {generate: meters, days: 1}, lateness: 2min}\n"


def refused(balance: str) -> str:
    text = f"{FILE}balance: {balance}\n"
    with pytest.raises(InputError) as caught:
        BalanceSettings.checked(parse_deployment(text, "ami.yaml", Path()).balance)
    return str(caught.value)


def test_what_is_not_written_is_as_usual() -> None:
    assert BalanceSettings.of({}) == BalanceSettings()
    found = BalanceSettings.of(settings_of({"policy": "global", "patience": None, "delta": 0.5}))
    assert found == BalanceSettings("global", thresholds=Thresholds(delta=0.5))


@pytest.mark.parametrize("suggest", ["true", True, "True"])
def test_a_command_line_has_texts_only(suggest: object) -> None:
    found = BalanceSettings.of(settings_of({"suggest": suggest, "samples": "3", "every": "90"}))
    assert (found.suggest, found.samples, found.every_s) == (True, 3, 90.0)


@pytest.mark.parametrize(
    ("balance", "pointer", "said"),
    [
        (
            "{evry: 5s}",
            "balance: {evry: 5s}\n              ^^^^\n",
            f"balance has no setting evry. There are {', '.join(KEYS)}. Did you mean every?",
        ),
        (
            "{policy: one-way, every: soon}",
            f"{' ' * 34}^^^^\n",
            "every of balance is soon. Write for example 500ms, 30 s, 2min, 6 hours or 1 day.",
        ),
        ("{every: 0s}", "^^\n", "every of balance is 0 s. Give a time above zero."),
        ("{samples: some}", "^^^^\n", "samples of balance is some. Give a number."),
        ("{samples: 1.5}", "^^^\n", "samples of balance is 1.5. Give a whole number above zero."),
        ("{suggest: maybe}", "^^^^^\n", "suggest of balance is maybe. Give true or false."),
        ("{delta: 2}", f"{' ' * 18}^\n", "delta is 2.0. Give a number from 0 to 1."),
        ("{domain: -1}", "^^\n", "domain of balance is -1. Give a whole number above zero."),
        ("{policy: chaos}", f"{' ' * 19}^^^^^\n", "no balancing policy chaos. There are correl"),
    ],
)
def test_mistakes_are_pointed_at(balance: str, pointer: str, said: str) -> None:
    told = refused(balance)
    assert told.startswith("ami.yaml, line 3:\n    balance: ")
    assert pointer in told
    assert said in told


def test_a_mistake_that_stands_nowhere() -> None:
    with pytest.raises(InputError) as caught:
        BalanceSettings.checked(settings_of({"policy": "rod"}))
    assert str(caught.value).startswith("no balancing policy rod. There are correlation, one-way")


times = st.integers(1, 10**10).map(lambda us: us / 1e6)
settings = st.builds(
    BalanceSettings,
    policy=st.sampled_from(["off", "one-way"]),
    every_s=times,
    samples=st.integers(1, 100),
    sample_s=times,
    suggest=st.booleans(),
    planning_s=times,
    thresholds=st.builds(Thresholds, st.floats(0, 9), st.floats(0, 1), st.floats(-1, 1)),
    guards=st.builds(
        Guards,
        st.integers(0, 10**9).map(lambda us: us / 1e6),
        st.floats(0, 9) | st.just(float("inf")),
        st.integers(1, 9),
    ),
    scope=st.builds(PlanningScope, st.integers(0, 99), st.floats(0, 9)),
)


@given(settings)
def test_what_is_shown_reads_back(chosen: BalanceSettings) -> None:
    shown = chosen.as_written()
    assert [*shown] == [*KEYS]
    assert BalanceSettings.checked(settings_of(shown)) == chosen


def test_a_line_says_what_is_not_as_usual() -> None:
    assert balance_words(BalanceSettings()) == "off"
    chosen = BalanceSettings("global", suggest=True, guards=Guards(5.0, 0.5, 2))
    said = "global, every 10s, suggest true, cooldown 5s, most_load 0.5"
    assert balance_words(chosen) == said
