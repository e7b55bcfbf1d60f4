"""Python source text: literals, calls and chains of calls in at most 100 columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from keyword import iskeyword

WIDTH = 100


def literal(value: object) -> str:
    """A constant as source text; texts in double quotes.

    >>> literal('it is "5"'), literal({"a": [1, None]})
    ('"it is \\\\"5\\\\""', '{"a": [1, None]}')
    """
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(literal, value)) + "]"
        case _:
            return repr(value)


def keywords(values: Mapping[str, str]) -> list[str]:
    """Keyword arguments; names that Python does not allow there go into a dictionary.

    >>> keywords({"a": "1", "class": "2"})
    ['a=1', '**{"class": 2}']
    """
    plain = [f"{name}={text}" for name, text in values.items() if not iskeyword(name)]
    if len(plain) == len(values):
        return plain
    # All from the first odd one on, to keep the order.
    names = list(values)
    first = next(at for at, name in enumerate(names) if iskeyword(name))
    odd = ", ".join(f"{literal(name)}: {values[name]}" for name in names[first:])
    return [*plain[:first], f"**{{{odd}}}"]


def call(name: str, arguments: Sequence[str], indent: int = 0) -> str:
    """A call on one line, or with one argument a line where it is too long.

    >>> print(call("ps.count", []))
    ps.count()
    """
    flat = f"{name}({', '.join(arguments)})"
    if len(flat) + indent <= WIDTH or not arguments:
        return flat
    margin = " " * (indent + 4)
    indented = (argument.replace("\n", f"\n{margin}") for argument in arguments)
    lines = "".join(f"{margin}{argument},\n" for argument in indented)
    return f"{name}(\n{lines}{' ' * indent})"


def assigned(variable: str, head: str, calls: Sequence[tuple[str, Sequence[str]]]) -> str:
    """``variable = head.call().call()``, one call a line where there are several.

    >>> print(assigned("x", "readings", [("filter", ['"kwh > 1"'])]))
    x = readings.filter("kwh > 1")
    """
    flat = f"{variable} = {head}" + "".join(f".{call(name, given)}" for name, given in calls)
    if not calls or (len(calls) < 3 and len(flat) <= WIDTH and "\n" not in flat):
        return flat
    lines = [f"    {head}", *(f"    {call(f'.{name}', given, 4)}" for name, given in calls)]
    return "\n".join([f"{variable} = (", *lines, ")"])
