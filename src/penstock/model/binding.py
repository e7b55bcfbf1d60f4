"""What keeps a fragment on its node: what it does, and what people wrote.

Plans, simulations and running systems ask here, so that all three move the same fragments.
"""

from __future__ import annotations

from penstock.errors import InputError
from penstock.model.fragments import Fragment
from penstock.model.network import Network


def may_move(fragment: Fragment | None, node_wanted: str | None) -> bool:
    """Whether policies may move a unit; without a fragment it is an intake.

    ``node_wanted`` is the node that a person has put it on.

    >>> may_move(None, None), may_move(None, "a")
    (True, False)
    """
    return node_wanted is None and (fragment is None or not fragment.is_bound)


def written_node(network: Network, fragment: Fragment) -> str | None:
    """The node that the queries of a fragment are written to run on.

    Those of one result have to agree; otherwise there is a fragment for each.
    """
    # Of a switch only the case that is wanted is made here.
    read = {input.stream for operator in fragment.operators for input in operator.inputs}
    inside = read - set(fragment.inputs)
    wished = [
        (query.name, query.on)
        for query in network.queries
        if query.on and (query.name in fragment.queries or query.stream in inside)
    ]
    for name, node in wished[1:]:
        first, first_node = wished[0]
        if node != first_node:
            raise InputError(
                f"{first} is to run on {first_node} and {name} on {node}, "
                f"but both are the result of the fragment {fragment.name}, which runs on one node",
                hint="Write the same node for both, or leave on: out of one of them.",
            )
    return wished[0][1] if wished else None
