"""How a system is to be balanced, as people write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isinf
from typing import Any, NamedTuple, TypeVar

from penstock.balance.guards import Guards
from penstock.balance.scope import Scope
from penstock.balance.situation import Thresholds
from penstock.errors import InputError, PenstockError, listed, suggestion
from penstock.model.durations import duration_us
from penstock.model.settings import Setting, Settings

Plain = str | float | int | bool | None
"""A value as JSON and the command line have it; None for no limit."""
Part = TypeVar("Part", Thresholds, Guards, Scope, "BalanceSettings")


@dataclass(frozen=True)
class BalanceSettings:
    """How a system is balanced, as ``balance:`` in a deployment file says.

    Loads are series of ``samples`` means over ``sample_s`` each, up to now. A plan that is not
    there after ``planning_s`` is not carried out.

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
    scope: Scope = field(default_factory=Scope)

    def __post_init__(self) -> None:
        for name in ("every_s", "sample_s", "planning_s"):
            if not getattr(self, name) > 0:
                raise InputError(
                    f"{name.removesuffix('_s')} of balance is {getattr(self, name):g} s",
                    hint="Give a time above zero.",
                )

    @classmethod
    def of(cls, written: Settings) -> BalanceSettings:
        """The settings somebody wrote; raises what is wrong with them, and where it stands."""
        given = {key: _read(key, setting) for key, setting in written.items()}
        whole = _changed(cls(), _OWN, given, written)
        return replace(
            whole,
            thresholds=_changed(whole.thresholds, _THRESHOLDS, given, written),
            guards=_changed(whole.guards, _GUARDS, given, written),
            scope=_changed(whole.scope, _SCOPE, given, written),
        )

    @classmethod
    def checked(cls, written: Settings) -> BalanceSettings:
        """As :meth:`of`, and there is such a policy."""
        found = cls.of(written)
        if found.policy != "off":
            # Only now: what compiles the policies takes seconds to load.
            from penstock.balance.policies import policy_named

            try:
                policy_named(found.policy)
            except PenstockError as error:
                raise _placed(error, written["policy"]) from None
        return found

    def as_written(self) -> dict[str, Plain]:
        """All settings under the keys that people write, read back as the same."""
        parts: tuple[tuple[object, Mapping[str, _Key]], ...] = (
            (self, _OWN),
            (self.thresholds, _THRESHOLDS),
            (self.guards, _GUARDS),
            (self.scope, _SCOPE),
        )
        return {
            key: _plain(getattr(part, known.field), known)
            for part, keys in parts
            for key, known in keys.items()
        }


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


class _Key(NamedTuple):
    field: str
    read: Callable[[object], Any]


_OWN = {
    "policy": _Key("policy", _text),
    "every": _Key("every_s", _duration_s),
    "samples": _Key("samples", _whole),
    "sample": _Key("sample_s", _duration_s),
    "suggest": _Key("suggest", _flag),
    "planning": _Key("planning_s", _duration_s),
}
_THRESHOLDS = {one.name: _Key(one.name, _number) for one in fields(Thresholds)}
_GUARDS = {
    "cooldown": _Key("cooldown_s", _duration_s),
    "patience": _Key("patience", _whole),
    "most_load": _Key("most_load", _number),
}
_SCOPE = {"domain": _Key("domain", _domain), "lightest": _Key("lightest", _number)}
KEYS: Mapping[str, _Key] = {**_OWN, **_THRESHOLDS, **_GUARDS, **_SCOPE}


def _read(key: str, setting: Setting) -> object:
    """The value of a setting; None where nothing is said."""
    if key not in KEYS:
        hint = f"There are {listed(KEYS)}. {suggestion(key, KEYS)}".strip()
        raise setting.unknown(f"balance has no setting {key}", hint)
    if setting.value is None:
        return None
    try:
        return KEYS[key].read(setting.value)
    except InputError as error:
        raise setting.unfit(f"{key} of balance is {error.what}", error.hint) from None


def _changed(
    part: Part, keys: Mapping[str, _Key], given: Mapping[str, object], written: Settings
) -> Part:
    """A part of the settings with what is given of it."""
    for key, known in keys.items():
        if given.get(key) is not None:
            changed: dict[str, Any] = {known.field: given[key]}
            try:
                part = replace(part, **changed)
            except PenstockError as error:
                raise _placed(error, written[key]) from None
    return part


def _placed(error: PenstockError, setting: Setting) -> PenstockError:
    return error if setting.place is None else error.at(setting.place)


def _plain(value: Any, key: _Key) -> Plain:
    if key.read is _duration_s:
        return f"{value:.6f}".rstrip("0").rstrip(".") + "s"
    if isinstance(value, float) and isinf(value):
        return None
    plain: Plain = value
    return plain


DEFAULT = BalanceSettings()


def balance_words(settings: BalanceSettings) -> str:
    """What a person has to know of it in a line.

    >>> balance_words(BalanceSettings.of(settings_of({"policy": "one-way", "patience": "3"})))
    'one-way, every 10s, patience 3'
    """
    if settings.policy == "off":
        return "off"
    usual = DEFAULT.as_written()
    own = settings.as_written()
    named = ("policy", "every")
    others = [key for key in own if key not in named and own[key] != usual[key]]
    said = [f"{key} {_shown(own[key])}" for key in others]
    return ", ".join([settings.policy, f"every {own['every']}", *said])


def _shown(value: Plain) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "no limit" if value is None else str(value)
