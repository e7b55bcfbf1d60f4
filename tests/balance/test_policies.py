"""Policies by name: ours, and those that other packages bring along, with settings of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock.balance import policies as module
from penstock.balance.deciding import decide
from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.policies import OWN, policies, policy_called
from penstock.balance.policy import Policy
from penstock.balance.settings import BalanceSettings, own_keys
from penstock.balance.situation import Situation, Thresholds
from penstock.errors import InputError
from penstock.model.settings import settings_of

PAGE = Path(__file__).parents[2] / "docs" / "balancing.md"
TWO = Situation.of([[0.3, 0.3], [0.2, 0.2]], [0, 0], [1.0, 1.0], [True, False])
RNG = np.random.default_rng(0)


class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True)
class Wilful(Policy):
    """Does as its settings say."""

    name = "wilful"
    operator: int = 0
    node: int = 1
    share: float = 0.5
    wait_s: float = 3.0
    is_sure: bool = True
    side: Side = Side.LEFT

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        after = situation.assignment.copy()
        after[self.operator] = self.node
        return move_plan(self.name, situation, after)


class Stale(Wilful):
    name = "stale"

    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        return move_plan(self.name, TWO, TWO.assignment)


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}", module.GROUP)


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "entry_points", lambda group: [entry("wilful", "Wilful")])


def test_ours_have_names_of_their_own() -> None:
    known = policies()
    assert len(known) == len(OWN)
    assert all(known[kind.name] is kind and policy_called(kind.name) is kind for kind in OWN)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("Nowhere", "the policy other cannot be loaded from"),
        ("TWO", f"is {__name__}:TWO, which is no named Policy class. Subclass penstock.balance."),
        ("Side", "which is no named Policy class"),
    ],
)
def test_what_is_brought_along_and_is_none(value: str, wrong: str) -> None:
    with pytest.raises(InputError) as caught:
        policies([entry("other", value)])
    assert wrong in str(caught.value)


def test_two_of_a_name() -> None:
    with pytest.raises(InputError, match="two policies are called wilful; the second is"):
        policies([entry("one", "Wilful"), entry("two", "Wilful")])


def test_one_that_is_brought_along_has_settings_of_its_own(brought: None) -> None:
    assert [*own_keys(Wilful)] == ["operator", "node", "share", "wait", "is_sure", "side"]
    written = {"policy": "wilful", "share": "0.25", "wait": "2min", "side": "right", "node": 0}
    chosen = BalanceSettings.checked(settings_of(written))
    assert chosen.make_policy() == Wilful(node=0, share=0.25, wait_s=120.0, side=Side.RIGHT)
    assert chosen.as_written()["wait"] == "2min"
    assert decide(Wilful(), TWO, RNG).assignment.tolist() == [1, 0]
    assert decide("wilful", TWO, RNG).assignment.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ({"side": "top"}, "side of balance is top. There are left, right."),
        ({"is_sure": "perhaps"}, "is_sure of balance is perhaps. Give true or false."),
        ({"node": "1.5"}, "node of balance is 1.5. Give a whole number."),
        ({"shore": 1}, "balance has no setting shore. There are policy, every, "),
        ({"wait_s": 1}, "balance has no setting wait_s."),
    ],
)
def test_what_it_does_not_take(brought: None, written: dict[str, object], wrong: str) -> None:
    with pytest.raises(InputError) as caught:
        BalanceSettings.checked(settings_of({"policy": "wilful", **written}))
    assert str(caught.value).startswith(wrong)


def test_settings_of_a_policy_that_is_gone_are_still_shown() -> None:
    kept = BalanceSettings.of(settings_of({"policy": "wilful", "share": 0.25}))
    assert kept.as_written()["share"] == 0.25
    with pytest.raises(InputError, match="no balancing policy wilful"):
        kept.make_policy()


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        (Wilful(node=2), "put operator 0 on node 2; there are 2, counted from 0"),
        (Wilful(operator=1), "moved operator 1, which may not move"),
        (Stale(), "gave a plan for another situation"),
    ],
)
def test_plans_are_checked(policy: Wilful, wrong: str) -> None:
    situation = Situation.of([[0.3], [0.2]], [0, 0], [1.0, 1.0], [True, False])
    with pytest.raises(InputError) as caught:
        decide(policy, situation, RNG)
    assert str(caught.value) == (
        f"policy {policy.name} {wrong}. The policy {policy.name} has to be mended."
    )


def test_the_policy_of_one_s_own() -> None:
    made: dict[str, object] = {}
    (block,) = re.findall(r"```python\n(# relieve.py.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(block, "relieve.py", "exec"), made)
    kind = made["Relieve"]
    assert isinstance(kind, type) and issubclass(kind, Policy)
    assert [*own_keys(kind)] == ["share"]
    loads = [[0.6], [0.3], [0.2]]
    plan = decide(kind(), Situation.of(loads, [0, 0, 1], [1.0, 1.0]), RNG)
    assert [(move.operator, move.target) for move in plan.moves] == [(1, 1)]
    calm = Situation.of(loads, [0, 1, 1], [1.0, 1.0])
    assert not decide(kind(), calm, RNG).moves


def test_names_alone_load_no_compiler() -> None:
    program = (
        "import sys; from penstock.balance.settings import BalanceSettings\n"
        "from penstock.model.settings import settings_of\n"
        "BalanceSettings.checked(settings_of({'policy': 'correlation'}))\n"
        "print('numba' in sys.modules)\n"
    )
    source = str(Path(penstock.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": source, "PATH": ""},
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
