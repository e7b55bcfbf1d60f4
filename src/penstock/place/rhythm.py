"""How often a fragment looks for new rows: as rarely as what was promised about it allows."""

from __future__ import annotations

from penstock.model.fragments import Fragment
from penstock.model.network import Network

_SHARE = 4
"""A row waits at most one round in each fragment; a quarter of the limit leaves time for two
fragments in a row and for their work."""


def round_us(network: Network, fragment: Fragment, shortest_us: int) -> int:
    """The time between two batches of a fragment.

    Every batch costs a fixed amount of work, however few rows it has: ten rounds a second for
    results that may take five seconds would be mostly waste. Without a limit on the latency of
    some query behind the fragment, rounds are as short as they may be.
    """
    limits = [
        query.max_latency_us
        for query in network.queries
        if fragment.output in network.upstream((query.stream,))
    ]
    known = [limit for limit in limits if limit is not None]
    if not known or len(known) < len(limits):
        return shortest_us
    return max(shortest_us, min(known) // _SHARE)
