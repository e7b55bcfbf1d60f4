"""A YAML text as values that know where they were written, so that errors can point at them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from penstock.errors import InputError, PenstockError, Place, listed, suggestion
from penstock.model.durations import duration_us

_TAG = "tag:yaml.org,2002:"
# Aliases can refer to themselves, and to lists of lists of lists; nothing we read is deeper.
_DEEPEST = 4


@dataclass(frozen=True)
class YamlFile:
    """A text and what to call it; makes the places that errors point at."""

    origin: str
    text: str

    def root(self) -> Value:
        """The whole text as one value; raises where it is not YAML, or empty."""
        node = _composed(self)
        if node is None:
            raise InputError(
                f"{self.origin} is empty", hint="A deployment file has at least streams: …"
            )
        return Value(self, node, self.origin)

    def place(self, node: Node) -> Place:
        """Where ``node`` is written; a value of several lines is its first character."""
        start, end = node.start_mark, node.end_mark
        length = end.column - start.column if end.line == start.line else 1
        return Place(self.origin, self.text, start.line + 1, start.column + 1, max(1, length))

    @contextmanager
    def pointing(self, node: Node) -> Iterator[None]:
        """Errors raised inside point at ``node`` unless they already point somewhere."""
        try:
            yield
        except PenstockError as error:
            raise error.at(self.place(node)) from None


def _composed(file: YamlFile) -> Node | None:
    try:
        node = YAML(typ="safe", pure=True).compose(file.text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = mark and Place(file.origin, file.text, mark.line + 1, mark.column + 1)
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise InputError(f"this is not YAML: {said}", place=place) from None
    except YAMLError as error:
        raise InputError(f"{file.origin} is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise InputError(f"{file.origin} is nested too deeply") from None
    return node if isinstance(node, Node) else None


@dataclass(frozen=True)
class Value:
    """One value of a YAML text.

    ``what`` says in an error what it is; errors about the whole of it point at ``key``, if given.
    """

    file: YamlFile
    node: Node
    what: str
    key: Node | None = None

    @property
    def place(self) -> Place:
        """Where errors about the whole value point."""
        return self.file.place(self.key or self.node)

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.node, ScalarNode)

    @property
    def is_nothing(self) -> bool:
        return self.is_scalar and self.node.tag == f"{_TAG}null"

    def pointing(self) -> AbstractContextManager[None]:
        """Errors raised inside point here; see :meth:`YamlFile.pointing`."""
        return self.file.pointing(self.key or self.node)

    def text(self, wanted: str = "a text") -> str:
        """The scalar as it was written."""
        if not self.is_scalar or self.is_nothing:
            raise self.unfit(wanted)
        return str(self.node.value)

    def flag(self) -> bool:
        """True or false."""
        if self.node.tag != f"{_TAG}bool":
            raise self.unfit("true or false")
        return str(self.node.value).lower() == "true"

    def number(self) -> int | float:
        """A number."""
        value = self.plain()
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self.unfit("a number")

    def whole(self) -> int:
        """A whole number."""
        value = self.plain()
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.unfit("a whole number")
        return value

    def duration_us(self) -> int:
        """A length of time."""
        written = self.text("a duration, such as 30 s")
        with self.file.pointing(self.node):
            return duration_us(written)

    def plain(self, depth: int = _DEEPEST) -> object:
        """The value as Python's own types; times stay as they were written."""
        if depth == 0:
            raise self.unfit("nested less deeply")
        if isinstance(self.node, SequenceNode):
            return [Value(self.file, item, self.what).plain(depth - 1) for item in self.node.value]
        if isinstance(self.node, MappingNode):
            return {key: value.plain(depth - 1) for key, value in self.entries().items()}
        return _scalar(self.node)

    def entries(self) -> Mapping[str, Value]:
        """The mapping's values by key; raises where this is no mapping or a key comes twice."""
        found: dict[str, Value] = {}
        for key, value in self._pairs():
            name = self._key(key, value)
            if name in found:
                raise InputError(
                    f"{self.what} has the key {name} twice",
                    hint="Remove one, or rename it.",
                    place=self.file.place(key),
                )
            found[name] = Value(self.file, value, f"{name} of {self.what}")
        return found

    def key_node(self, name: str) -> Node:
        """Where the key ``name`` of this mapping is written."""
        return next(key for key, _ in self._pairs() if key.value == name)

    def section(self, allowed: Sequence[str], what: str = "") -> Section:
        """The mapping with only ``allowed`` keys, called ``what`` in errors."""
        named = Value(self.file, self.node, what or self.what, self.key)
        entries = named.entries()
        for key in entries:
            if key not in allowed:
                raise InputError(
                    f"no key {key} in {named.what}; the keys are {listed(allowed)}",
                    hint=suggestion(key, allowed),
                    place=self.file.place(self.key_node(key)),
                )
        return Section(named, entries)

    def unfit(self, wanted: str) -> InputError:
        """The error for a value of the wrong kind."""
        return InputError(
            f"{self.what} must be {wanted}; it is {self._given()}",
            place=self.file.place(self.node),
        )

    def _given(self) -> str:
        if self.is_nothing:
            return "empty"
        if self.is_scalar:
            return repr(self.node.value)
        return "a list" if isinstance(self.node, SequenceNode) else "a mapping"

    def _pairs(self) -> list[tuple[Node, Node]]:
        if not isinstance(self.node, MappingNode):
            raise self.unfit("a mapping of keys to values")
        return list(self.node.value)

    def _key(self, key: Node, value: Node) -> str:
        if not isinstance(key, ScalarNode):
            raise Value(self.file, key, f"a key of {self.what}").unfit("a text")
        if " " in str(key.value) and Value(self.file, value, self.what).is_nothing:
            raise InputError(
                f"{key.value!r} stands where a key should",
                hint="Inside { } a comma ends the value before it; put that value in quotes.",
                place=self.file.place(key),
            )
        return str(key.value)


def _scalar(node: Node) -> object:
    if node.tag == f"{_TAG}timestamp":
        return str(node.value)
    built: object = YAML(typ="safe", pure=True).constructor.construct_object(node)
    return built


@dataclass(frozen=True)
class Section:
    """A mapping whose keys are known to be allowed."""

    whole: Value
    entries: Mapping[str, Value]

    @property
    def what(self) -> str:
        return self.whole.what

    @property
    def file(self) -> YamlFile:
        return self.whole.file

    def __contains__(self, key: str) -> bool:
        return key in self.entries and not self.entries[key].is_nothing

    def __getitem__(self, key: str) -> Value:
        if key not in self.entries:
            raise InputError(
                f"{self.what} has no {key}",
                hint=f"Add {key}: …",
                place=self.whole.place,
            )
        return self.entries[key]

    def nearest(self, key: str) -> Value:
        """What errors about ``key`` point at: its value, or the whole section without one."""
        return self.entries.get(key, self.whole)

    def text(self, key: str, default: str = "") -> str:
        """The text under ``key``, or ``default``."""
        return self[key].text() if key in self else default

    def flag(self, key: str, default: bool) -> bool:
        """True or false under ``key``, or ``default``."""
        return self[key].flag() if key in self else default

    def duration_us(self, key: str) -> int | None:
        """The duration under ``key``, or None."""
        return self[key].duration_us() if key in self else None
