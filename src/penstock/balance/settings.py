"""How a system is to be balanced, as people write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import partial
from math import isinf
from typing import Any, NamedTuple, TypeVar

from penstock.balance.guards import Guards
from penstock.balance.hierarchy.written import HIERARCHY, LiveHierarchy, hierarchy_written
from penstock.balance.planning_scope import PlanningScope
from penstock.balance.policies import policy_called
from penstock.balance.policy import Policy
from penstock.balance.situation import Thresholds
from penstock.errors import InputError, PenstockError, listed, suggestion
from penstock.model.durations import duration_us
from penstock.model.settings import Setting, Settings

Plain = str | float | int | bool | None
"""A value as JSON and the command line have it; None for no limit."""
Part = TypeVar("Part")


@dataclass(frozen=True)
class BalanceSettings:
    """How a system is balanced, as ``balance:`` in a deployment file says.

    Loads are series of ``samples`` means over ``sample_s`` each, up to now. A plan that is not
    there after ``planning_s`` is not carried out. ``own`` are settings that only the policy has;
    that of a ``tree``, where neighbours negotiate, has no others.

    >>> from penstock.model.settings import settings_of
    >>> chosen = BalanceSettings.of(settings_of({"policy": "one-way", "every": "5s"}))
    >>> chosen.every_s, chosen.as_written()["cooldown"]
    (5.0, '30s')
    """

    policy: str = "off"
    every_s: float = 10.0
    samples: int = 10
    sample_s: float = 4.0
    suggest: bool = False
    planning_s: float = 15.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    guards: Guards = field(default_factory=lambda: Guards(cooldown_s=30.0, patience=2))
    scope: PlanningScope = field(default_factory=PlanningScope)
    own: Settings = field(default_factory=dict)
    tree: LiveHierarchy | None = None

    def __post_init__(self) -> None:
        for name in ("every_s", "sample_s", "planning_s"):
            if not getattr(self, name) > 0:
                raise InputError(
                    f"{name.removesuffix('_s')} of balance is {getattr(self, name):g} s",
                    hint="Give a time above zero.",
                )

    @classmethod
    def of(cls, written: Settings) -> BalanceSettings:
        """The settings somebody wrote; raises what is wrong with them, and where it stands.

        What only a policy can know is taken as it is: see :meth:`checked`.
        """
        policy = written.get("policy")
        if policy is not None and policy.value == HIERARCHY:
            return cls(HIERARCHY, tree=hierarchy_written(written))
        common = {key: setting for key, setting in written.items() if key in KEYS}
        given = {key: _read(key, setting) for key, setting in common.items()}
        whole = _changed(cls(), _COMMON, given, written)
        return replace(
            whole,
            thresholds=_changed(whole.thresholds, _THRESHOLDS, given, written),
            guards=_changed(whole.guards, _GUARDS, given, written),
            scope=_changed(whole.scope, _SCOPE, given, written),
            own={key: setting for key, setting in written.items() if key not in KEYS},
        )

    @classmethod
    def checked(cls, written: Settings) -> BalanceSettings:
        """As :meth:`of`; there is such a policy, and it has these settings of its own."""
        found = cls.of(written)
        if found.tree is not None:
            return found
        try:
            policy_called(found.policy)
        except PenstockError as error:
            raise _placed(error, written["policy"]) from None
        found.make_policy()
        return found

    def make_policy(self) -> Policy:
        """The policy with its own settings; raises what is wrong with them, and where it stands."""
        kind = policy_called(self.policy)
        keys = own_keys(kind)
        given = {key: _read(key, setting, keys) for key, setting in self.own.items()}
        return _changed(kind(), keys, given, self.own)

    def as_written(self) -> dict[str, Plain]:
        """All settings under the keys that people write, read back as the same."""
        if self.tree is not None:
            return self.tree.as_written()
        parts: tuple[tuple[object, Mapping[str, _SettingKey]], ...] = (
            (self, _COMMON),
            (self.thresholds, _THRESHOLDS),
            (self.guards, _GUARDS),
            (self.scope, _SCOPE),
        )
        return {
            key: _plain(getattr(part, known.field), known)
            for part, keys in parts
            for key, known in keys.items()
        } | {key: _shown_as(setting.value) for key, setting in self.own.items()}


def _text(value: object) -> str:
    return str(value)


def _duration_s(value: object) -> float:
    try:
        return duration_us(value if isinstance(value, int | float) else str(value)) / 1e6
    except InputError as error:
        raise InputError(f"{value}", hint=error.hint) from None


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise InputError(f"{value}", hint="Give a number.") from None


def _whole(value: object) -> int:
    number = _number(value)
    if number < 1 or not number.is_integer():
        raise InputError(f"{value}", hint="Give a whole number above zero.")
    return int(number)


def _domain(value: object) -> int:
    return 0 if str(value) == "0" else _whole(value)


def _flag(value: object) -> bool:
    written = str(value).lower()
    if written not in ("true", "false"):
        raise InputError(f"{value}", hint="Give true or false.")
    return written == "true"


class _SettingKey(NamedTuple):
    field: str
    read: Callable[[object], Any]


_COMMON = {
    "policy": _SettingKey("policy", _text),
    "every": _SettingKey("every_s", _duration_s),
    "samples": _SettingKey("samples", _whole),
    "sample": _SettingKey("sample_s", _duration_s),
    "suggest": _SettingKey("suggest", _flag),
    "planning": _SettingKey("planning_s", _duration_s),
}
_THRESHOLDS = {limit.name: _SettingKey(limit.name, _number) for limit in fields(Thresholds)}
_GUARDS = {
    "cooldown": _SettingKey("cooldown_s", _duration_s),
    "patience": _SettingKey("patience", _whole),
    "most_load": _SettingKey("most_load", _number),
}
_SCOPE = {"domain": _SettingKey("domain", _domain), "lightest": _SettingKey("lightest", _number)}
KEYS: Mapping[str, _SettingKey] = {**_COMMON, **_THRESHOLDS, **_GUARDS, **_SCOPE}


def own_keys(kind: type[Policy]) -> dict[str, _SettingKey]:
    """The settings that a policy has beside the common ones: the fields of a dataclass.

    A time in seconds is a field that ends in ``_s``; people write it as a duration.
    """
    usual: Any = kind()
    if not is_dataclass(usual):
        return {}
    return {
        known.name.removesuffix("_s"): _SettingKey(
            known.name, _reader(known.name, getattr(usual, known.name))
        )
        for known in fields(usual)
    }


def _reader(name: str, usual: object) -> Callable[[object], Any]:
    """What reads a setting like the usual one."""
    if isinstance(usual, bool):
        return _flag
    if isinstance(usual, float):
        return _duration_s if name.endswith("_s") else _number
    if isinstance(usual, Enum):
        return partial(_choice, type(usual))
    return _count if isinstance(usual, int) else _text


def _choice(kind: type[Enum], value: object) -> Enum:
    known = [str(choice.value) for choice in kind]
    if str(value) not in known:
        raise InputError(f"{value}", hint=f"There are {listed(known)}.")
    return kind(str(value))


def _count(value: object) -> int:
    number = _number(value)
    if not number.is_integer():
        raise InputError(f"{value}", hint="Give a whole number.")
    return int(number)


def _read(key: str, setting: Setting, own: Mapping[str, _SettingKey] | None = None) -> object:
    """The value of a setting; None where nothing is said."""
    known = KEYS if own is None else {**KEYS, **own}
    if key not in known:
        hint = f"There are {listed(known)}. {suggestion(key, known)}".strip()
        raise setting.unknown(f"balance has no setting {key}", hint)
    if setting.value is None:
        return None
    try:
        return known[key].read(setting.value)
    except InputError as error:
        raise setting.unfit(f"{key} of balance is {error.what}", error.hint) from None


def _changed(
    part: Part, keys: Mapping[str, _SettingKey], given: Mapping[str, object], written: Settings
) -> Part:
    """A part of the settings with what is given of it."""
    for key, known in keys.items():
        if given.get(key) is not None:
            changed: dict[str, Any] = {known.field: given[key]}
            try:
                part = replace(part, **changed)  # type: ignore[type-var]
            except PenstockError as error:
                raise _placed(error, written[key]) from None
    return part


def _placed(error: PenstockError, setting: Setting) -> PenstockError:
    return error if setting.place is None else error.at(setting.place)


def _plain(value: Any, key: _SettingKey) -> Plain:
    if key.read is _duration_s:
        return f"{value:.6f}".rstrip("0").rstrip(".") + "s"
    if isinstance(value, float) and isinf(value):
        return None
    plain: Plain = value
    return plain


def _shown_as(value: object) -> Plain:
    return value if isinstance(value, str | float | int | bool | None) else str(value)


DEFAULT = BalanceSettings()


def balance_words(settings: BalanceSettings) -> str:
    """What a person has to know of it in a line.

    >>> from penstock.model.settings import settings_of
    >>> balance_words(BalanceSettings.of(settings_of({"policy": "one-way", "patience": "3"})))
    'one-way, every 10s, patience 3'
    """
    if settings.policy == "off":
        return "off"
    own = settings.as_written()
    if settings.tree is not None:
        return ", ".join([HIERARCHY, *(f"{key} {own[key]}" for key in own if key != "policy")])
    usual = DEFAULT.as_written()
    named = ("policy", "every")
    others = [key for key in own if key not in named and own[key] != usual.get(key)]
    said = [f"{key} {shown_value(own[key])}" for key in others]
    return ", ".join([settings.policy, f"every {own['every']}", *said])


def shown_value(value: Plain) -> str:
    """A setting as people read it; none is no limit."""
    if isinstance(value, bool):
        return str(value).lower()
    return "no limit" if value is None else str(value)
