"""Entries of a file by name, for abstract networks and trees, and errors that point at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from penstock.errors import InputError
from penstock.lang.deployment.yamlfile import Section, Value

_T = TypeVar("_T")


class PointingAtNames:
    """Errors about the whole file point at the entry that they name first.

    Sections are searched in the order given.
    """

    def __init__(self, top: Section, sections: Sequence[str]) -> None:
        self._top = top
        self._sections = sections

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, InputError) or error.place is not None:
            return
        words = error.what.replace(",", " ").split()
        for section in self._sections:
            value = self._top.entries.get(section)
            names = value.entries() if value is not None else {}
            named = next((word for word in words if word in names), None)
            if value is not None and named is not None:
                error.at(value.file.place(value.key_node(named)))
                return
        error.at(self._top.whole.place)


def each_entry(
    whole: Value, kind: str, allowed: Sequence[str], read: Callable[[str, Section], _T]
) -> Iterator[_T]:
    """What ``read`` makes of every entry; its errors point at the entry's name."""
    for (name, value), (key, _) in zip(whole.entries().items(), whole.node.value, strict=True):
        named = Value(value.file, value.node, f"{kind} {name}", key)
        found = Section(named, {}) if value.is_nothing else named.section(allowed)
        with named.pointing():
            yield read(name, found)
