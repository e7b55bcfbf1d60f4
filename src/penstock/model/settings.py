"""Settings as people write them, before somebody who knows their meaning has read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import InputError, Place


@dataclass(frozen=True)
class Setting:
    """What was written under a key; where it and its key stand, if that was in a file.

    >>> raise Setting("soon").unfit("every of balance is soon", "Give a duration, such as 10s.")
    Traceback (most recent call last):
    penstock.errors.InputError: every of balance is soon. Give a duration, such as 10s.
    """

    value: object
    place: Place | None = field(default=None, compare=False, repr=False)
    key_place: Place | None = field(default=None, compare=False, repr=False)

    def unfit(self, what: str, hint: str) -> InputError:
        """The error for a value that makes no sense, pointing at it."""
        return InputError(what, hint=hint, place=self.place)

    def unknown(self, what: str, hint: str) -> InputError:
        """The error for a key that nobody knows, pointing at it."""
        return InputError(what, hint=hint, place=self.key_place)


Settings = Mapping[str, Setting]


def settings_of(values: Mapping[str, object]) -> dict[str, Setting]:
    """Settings that stand in no file.

    >>> settings_of({"every": "5s"})
    {'every': Setting(value='5s')}
    """
    return {name: Setting(value) for name, value in values.items()}


def values_of(settings: Settings) -> dict[str, object]:
    """The bare values."""
    return {name: setting.value for name, setting in settings.items()}
