"""The planning problem of a deployment with devices: chains, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.device.chain import Chain, chain_of
from penstock.device.payload import envelope_bytes
from penstock.errors import InputError
from penstock.model.devices import INDEXED, Broadcast, DeviceProfile, DeviceSection, GivenCost
from penstock.model.network import Deployment
from penstock.power.air.packets import DESCRIPTOR_BYTES, ENTRY_BYTES
from penstock.power.problem import ChainSource, PowerProblem


@dataclass(frozen=True)
class ChainMeasure:
    """What was measured of a chain: the stream it begins with, and every operator in order."""

    rate_per_s: float
    tuple_bytes: float
    costs: tuple[GivenCost, ...]


def given_problem(deployment: Deployment) -> tuple[PowerProblem, bool]:
    """The problem as far as the file gives it, and whether it gives everything."""
    section = _section(deployment)
    chains = {query.name: chain_of(deployment.network, query.name) for query in section.queries}
    is_known = all(_is_given(section, chain) for chain in chains.values())
    return problem_of(section, chains, {}), is_known


def _section(deployment: Deployment) -> DeviceSection:
    if deployment.devices is None or not deployment.devices.queries:
        raise InputError(
            f"{deployment.name} has no query that a device hears",
            hint="Name queries under queries: of a device.",
        )
    return deployment.devices


def _is_given(section: DeviceSection, chain: Chain) -> bool:
    query = section.query(chain.query)
    assert query is not None
    costs = [query.costs.get(operator.name) for operator in chain.operators]
    is_whole = all(cost is not None and None not in vars(cost).values() for cost in costs)
    return is_whole and query.rate_per_s is not None and query.tuple_bytes is not None


def problem_of(
    section: DeviceSection,
    chains: Mapping[str, Chain],
    measured: Mapping[str, ChainMeasure],
    listeners: Mapping[str, Sequence[DeviceProfile]] | None = None,
) -> PowerProblem:
    """The problem with what was measured; what the file gives counts before that.

    ``listeners`` are those who hear each query now, if that is known. Sizes are those of real
    packets.
    """
    broadcast = _with_real_sizes(section, chains)
    sources, queries, devices = [], [], {device.name: device for device in section.devices}
    for query in section.queries:
        chain, found = chains[query.name], measured.get(query.name)
        rate = query.rate_per_s if query.rate_per_s is not None else found and found.rate_per_s
        size = query.tuple_bytes if query.tuple_bytes is not None else found and found.tuple_bytes
        # Of its own: the same stream may be described twice.
        source = f"{chain.source} of {query.name}"
        sources.append(ChainSource(source, rate or 0.0, size or 0.0))
        here = _told_apart(listeners.get(query.name, ()) if listeners is not None else ())
        devices |= {device.name: device for device in here}
        asked = replace(query, devices=tuple(device.name for device in here) or query.devices)
        planned = chain.as_query(asked, found.costs if found else None)
        queries.append(replace(planned, source=source))
    return PowerProblem(broadcast, tuple(sources), tuple(devices.values()), tuple(queries))


def _with_real_sizes(section: DeviceSection, chains: Mapping[str, Chain]) -> Broadcast:
    """The broadcast with what every result takes beside its rows: the mean over all final ones."""
    envelopes = [
        envelope_bytes(chain.shape_at(len(chain.operators)).schema, section.is_open)
        for chain in chains.values()
    ]
    is_indexed = section.broadcast.organisation == INDEXED
    return replace(
        section.broadcast,
        descriptor_bytes=DESCRIPTOR_BYTES + sum(envelopes) / len(envelopes),
        index_entry_bytes=ENTRY_BYTES if is_indexed else 0,
    )


def _told_apart(listeners: Sequence[DeviceProfile]) -> list[DeviceProfile]:
    """Profiles of which no two have the same name: nobody keeps devices from choosing the same."""
    found: dict[str, DeviceProfile] = {}
    for device in listeners:
        name, number = device.name, 2
        while name in found:
            name, number = f"{device.name} ({number})", number + 1
        found[name] = replace(device, name=name)
    return list(found.values())
