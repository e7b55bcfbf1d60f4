"""How often a fragment looks for new rows: as rarely as what was promised about it allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.errors import listed
from penstock.model.fragments import Fragment
from penstock.model.network import Network

SHORTEST_US = 200_000
"""How often a fragment looks for rows where nothing was promised about it."""

UNHURRIED_US = 5_000_000
"""How often a plan lets it look at least."""

_SHARE = 4
"""A row waits at most one round in each fragment; a quarter of the limit leaves time for two
fragments in a row and for their work."""


def round_us(network: Network, fragment: Fragment, shortest_us: int) -> int:
    """The time between two batches of a fragment.

    Every batch costs a fixed amount of work, however few rows it has: ten rounds a second for
    results that may take five seconds would be mostly waste. Without a limit on the latency of
    some query behind the fragment, rounds are as short as they may be.
    """
    promised_us = promised_round_us(network, fragment)
    return shortest_us if promised_us is None else max(shortest_us, promised_us)


def promised_round_us(network: Network, fragment: Fragment) -> int | None:
    """The longest time between two batches that keeps all promises; None where there are none.

    A fragment without limits looks for rows as often as it can, and less often on a full node.
    """
    limits = _limits_us(network, fragment)
    known = [limit for limit in limits if limit is not None]
    if not known or len(known) < len(limits):
        return None
    return min(known) // _SHARE


def counted_rounds_s(network: Network, fragments: Iterable[Fragment]) -> Mapping[str, float]:
    """Every how many seconds a plan must leave room for a batch, by fragment.

    That is what has been promised. A fragment about which nothing was looks for rows as often as it
    can while its node is idle, and must not starve when it is busy.
    """
    return {fragment.name: _counted_us(network, fragment) / 1e6 for fragment in fragments}


def _counted_us(network: Network, fragment: Fragment) -> int:
    promised_us = promised_round_us(network, fragment)
    return UNHURRIED_US if promised_us is None else max(SHORTEST_US, promised_us)


def unhurried(network: Network, fragments: Iterable[Fragment]) -> tuple[str, ...]:
    """What to say about fragments that nothing was promised about, if there are any."""
    names = [
        fragment.name for fragment in fragments if promised_round_us(network, fragment) is None
    ]
    every = f"counted with a batch every {UNHURRIED_US / 1e6:g} s"
    return (f"without a max_latency, and {every}: {listed(names)}",) if names else ()


def latency_limit_us(network: Network, fragment: Fragment) -> int | None:
    """The tightest limit on the latency of the queries behind a fragment; None if there is none."""
    return min(
        (limit for limit in _limits_us(network, fragment) if limit is not None), default=None
    )


def _limits_us(network: Network, fragment: Fragment) -> list[int | None]:
    return [query.max_latency_us for query in network.queries_behind[fragment.output]]
