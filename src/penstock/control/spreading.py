"""Joins that are shared out to nodes: each becomes parts, and what gathers their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.errors import InputError
from penstock.model.beginnings import FIRST, Beginning
from penstock.model.fragments import Fragment
from penstock.model.ids import FragmentId
from penstock.model.network import Network
from penstock.model.operators import Input, Union, WindowJoin
from penstock.model.parts import JoinSpread, parts_of


def spread_fragment(
    network: Network, fragment: Fragment, beginnings: Mapping[str, Beginning]
) -> list[Fragment]:
    """What a fragment becomes: itself, or the parts of its join and what gathers their results.

    ``beginnings`` says since when parts count, by their names.
    """
    spread = _spread_of(network, fragment)
    if spread is None:
        return [replace(fragment, beginning=beginnings.get(fragment.name, FIRST))]
    parts = [
        replace(
            fragment,
            name=part.id,
            writes=(),
            queries=(),
            is_read=True,
            beginning=beginnings.get(part.id, FIRST),
            part=part,
        )
        for part in parts_of(fragment.name, spread)
    ]
    _check(network, parts[0], fragment.name)
    shape = network.shapes[fragment.output]
    branches = tuple(Input(part.channel, shape) for part in parts)
    names = tuple(part.channel for part in parts)
    union = Union(fragment.output, branches)
    return [*parts, replace(fragment, inputs=names, operators=(union,), gathers=spread)]


def in_parts(network: Network, fragments: Iterable[Fragment]) -> list[Fragment]:
    """The fragments as they run on several nodes: joins in parts where somebody asks for it."""
    return [part for fragment in fragments for part in spread_fragment(network, fragment, {})]


def whole_fragments(given: Iterable[Fragment | None]) -> list[Fragment]:
    """The fragments with joins in parts as they were before: what a strategy can place.

    What gathers goes where the join would go; where its parts go is not the strategy's to say.
    """
    fragments = [fragment for fragment in given if fragment is not None]
    first = {
        fragment.part.whole: fragment
        for fragment in fragments
        if fragment.part and fragment.part.number == 1
    }
    found = []
    for fragment in fragments:
        if fragment.gathers is not None:
            part = first[FragmentId(fragment.name)]
            found.append(
                replace(fragment, inputs=part.inputs, operators=part.operators, gathers=None)
            )
        elif fragment.part is None:
            found.append(fragment)
    return found


def _spread_of(network: Network, fragment: Fragment) -> JoinSpread | None:
    """How the fragment's join is to be shared out, if it has one and a query behind it says so."""
    if not any(isinstance(operator, WindowJoin) for operator in fragment.operators):
        return None
    behind = network.queries_behind[fragment.output]
    found = [query for query in behind if query.spread is not None]
    if not found:
        return None
    for query in behind:
        if query.engine == "native" or query.join == "native":
            raise InputError(
                f"query {found[0].name} asks for a join that is spread, and {query.name}, which "
                "reads it, for Spark's own",
                hint=f"Leave spread out of {found[0].name}, or engine and join out of "
                f"{query.name}.",
            )
    return found[0].spread


def _check(network: Network, part: Fragment, name: str) -> None:
    """Raises where kernels cannot run a part, or its name is taken."""
    # Only now: what it needs is large, and few joins are spread.
    from penstock.kernels.planning import plan_fragment
    from penstock.kernels.window_plan import NotLight

    planned = plan_fragment(part)
    if isinstance(planned, NotLight):
        raise InputError(
            f"the join of {name} cannot be spread: {planned.reason}",
            hint="Leave spread out, or change what it joins by.",
        )
    taken = [shape for shape in network.shapes if shape.lower() == part.name.lower()]
    if taken:
        raise InputError(
            f"{taken[0]} is what a part of {name} is called", hint="Give it another name."
        )
