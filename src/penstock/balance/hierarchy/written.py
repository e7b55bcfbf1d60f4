"""How a tree is balanced, as people write it under ``balance:``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from penstock.balance.hierarchy.settings import (
    Accept,
    HierarchySettings,
    TransferOrder,
    Utilisation,
)
from penstock.balance.hierarchy.transfers import DownRule
from penstock.errors import InputError, listed, suggestion
from penstock.model.durations import duration_us
from penstock.model.settings import Setting, Settings

HIERARCHY = "hierarchy"
_LIVE_HOLD_S = 5.0
"""Hand-overs are prepared while a negotiation lasts, which takes a node some seconds at worst."""


@dataclass(frozen=True)
class LiveHierarchy:
    """The protocol's settings, and the memory for states that counts as all of a node.

    Without a ``budget_bytes`` that is the memory of the node.
    """

    protocol: HierarchySettings = field(default_factory=HierarchySettings)
    budget_bytes: int | None = None

    def as_written(self) -> dict[str, str | float | int | bool | None]:
        """The settings under the keys that people write, read back as the same."""
        own = self.protocol
        return {
            "policy": HIERARCHY,
            "lower": own.lower,
            "upper": own.upper,
            "period": f"{own.period_s:g}s",
            "utilisation": own.utilisation.value,
            "accept": own.accept.value,
            "rule": own.rule.value,
            "order": own.order.value,
            "rest": own.rest_periods,
            "relay": own.relay,
            **({} if self.budget_bytes is None else {"budget": self.budget_bytes}),
        }


def hierarchy_written(written: Settings) -> LiveHierarchy:
    """The settings that somebody wrote for this policy; raises what is wrong, and where it stands.

    >>> from penstock.model.settings import settings_of
    >>> hierarchy_written(settings_of({"upper": 70, "period": "2s"})).protocol.target
    55.0
    """
    given: dict[str, Any] = {"hold_s": _LIVE_HOLD_S}
    for key, setting in written.items():
        if key not in (*_KEYS, "policy"):
            known = ["policy", *_KEYS]
            hint = f"There are {listed(known)}. {suggestion(key, known)}".strip()
            raise setting.unknown(f"balance by hierarchy has no setting {key}", hint)
        if key != "policy" and setting.value is not None:
            name, read = _KEYS[key]
            try:
                given[name] = read(setting.value)
            except InputError as error:
                raise setting.unfit(f"{key} of balance is {setting.value}", error.hint) from None
    budget_bytes = given.pop("budget_bytes", None)
    try:
        return LiveHierarchy(HierarchySettings(**given), budget_bytes)
    except InputError as error:
        wrong = _find_wrong(given, written)
        raise error if wrong is None else wrong.unfit(error.what, error.hint) from None


def _find_wrong(given: Mapping[str, Any], written: Settings) -> Setting | None:
    """The setting to point at, where values are right by themselves and make no sense together."""
    for keys in _CHECKED_TOGETHER:
        names = {key: _KEYS[key][0] for key in keys}
        try:
            HierarchySettings(**{name: given[name] for name in names.values() if name in given})
        except InputError:
            return next((written[key] for key in keys if names[key] in given), None)
    return None


def _percent(value: object) -> float:
    try:
        return float(str(value).removesuffix("%"))
    except ValueError:
        raise InputError("no number", hint="Give percent of a node.") from None


def _periods(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise InputError("no number", hint="Give a number of periods.") from None


def _flag(value: object) -> bool:
    said = {"true": True, "false": False}.get(str(value).lower())
    if said is None:
        raise InputError("neither true nor false", hint="Give true or false.")
    return said


def _duration_s(value: object) -> float:
    return duration_us(value if isinstance(value, int | float) else str(value)) / 1e6


def _choice(kind: type[StrEnum]) -> Callable[[object], StrEnum]:
    def read(value: object) -> StrEnum:
        try:
            return kind(str(value))
        except ValueError:
            names = [choice.value for choice in kind]
            raise InputError("no choice", hint=f"There are {listed(names)}.") from None

    return read


def _bytes(value: object) -> int:
    # The reader of sizes is above this layer.
    text = str(value).strip().lower()
    shift = {"k": 10, "m": 20, "g": 30}.get(text[-1:], 0)
    number = text[:-1] if shift else text
    if not number.isdecimal() or not int(number):
        raise InputError("no memory", hint="Give memory, for example 64m.")
    return int(number) << shift


_KEYS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "lower": ("lower", _percent),
    "upper": ("upper", _percent),
    "period": ("period_s", _duration_s),
    "utilisation": ("utilisation", _choice(Utilisation)),
    "accept": ("accept", _choice(Accept)),
    "rule": ("rule", _choice(DownRule)),
    "order": ("order", _choice(TransferOrder)),
    "rest": ("rest_periods", _periods),
    "relay": ("relay", _flag),
    "budget": ("budget_bytes", _bytes),
}
_CHECKED_TOGETHER = (("upper", "lower"), ("period",), ("rest",))
