"""What is known about rates before anything has run."""

from __future__ import annotations

from penstock.feeds.generators import paced_rate_per_s
from penstock.model.network import Network
from penstock.model.sources import GeneratorSource


def known_rates(network: Network) -> dict[str, float]:
    """The rates of streams whose generators keep to one."""
    rates = {
        stream.name: paced_rate_per_s(stream.source.generator, stream.source.options)
        for stream in network.streams
        if isinstance(stream.source, GeneratorSource)
    }
    return {name: rate for name, rate in rates.items() if rate is not None}
