"""How a system is to be balanced, as people write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from penstock.balance.guards import Guards
from penstock.balance.scope import Scope
from penstock.balance.situation import Thresholds
from penstock.errors import InputError, listed
from penstock.model.durations import duration_us


@dataclass(frozen=True)
class BalanceSettings:
    """How a system is balanced, as ``balance:`` in a deployment file says.

    Loads are series of ``samples`` means over ``sample_s`` each, up to now. A plan that is not
    there after ``planning_s`` is not carried out.
    """

    policy: str = "off"
    every_s: float = 10.0
    samples: int = 10
    sample_s: float = 4.0
    suggest: bool = False
    planning_s: float = 15.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    guards: Guards = field(default_factory=Guards)
    scope: Scope = field(default_factory=Scope)

    @classmethod
    def parse(cls, written: Mapping[str, object]) -> BalanceSettings:
        """The settings written in a file; raises what is wrong with them.

        >>> BalanceSettings.parse({"policy": "correlation", "every": "5s"}).every_s
        5.0
        """
        known = (
            "policy",
            "every",
            "samples",
            "sample",
            "suggest",
            "planning",
            "cooldown",
            "patience",
            "most_load",
            "domain",
            "lightest",
        )
        limits = [field.name for field in fields(Thresholds)]
        for name in written:
            if name not in (*known, *limits):
                raise InputError(
                    f"balance has no setting {name}", hint=f"There are {listed([*known, *limits])}."
                )
        policy = str(written.get("policy", "off"))
        if policy != "off":
            # Only now: what compiles the policies takes seconds to load.
            from penstock.balance.policies import policy_named

            policy_named(policy)
        return cls(
            policy,
            duration_us(str(written.get("every", "10s"))) / 1e6,
            _whole(written, "samples", 10),
            duration_us(str(written.get("sample", "4s"))) / 1e6,
            bool(written.get("suggest", False)),
            duration_us(str(written.get("planning", "15s"))) / 1e6,
            Thresholds(**{name: _number(written, name, 0.0) for name in limits if name in written}),
            Guards(
                duration_us(str(written.get("cooldown", "30s"))) / 1e6,
                _number(written, "most_load", float("inf")),
                _whole(written, "patience", 2),
            ),
            Scope(
                _whole(written, "domain", 1) if "domain" in written else 0,
                _number(written, "lightest", 0.0),
            ),
        )


def _number(written: Mapping[str, object], name: str, otherwise: float) -> float:
    try:
        return float(str(written.get(name, otherwise)))
    except ValueError:
        raise InputError(f"{name} of balance is {written[name]}", hint="Give a number.") from None


def _whole(written: Mapping[str, object], name: str, otherwise: int) -> int:
    number = _number(written, name, otherwise)
    if number < 1 or not number.is_integer():
        raise InputError(
            f"{name} of balance is {written[name]}", hint="Give a whole number above zero."
        )
    return int(number)
