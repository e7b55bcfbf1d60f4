"""A deployment as the server runs it: every query for devices only up to its cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.device.chain import Chain, chain_of
from penstock.device.problem import given_problem
from penstock.errors import InputError
from penstock.model.expressions import Column
from penstock.model.network import Deployment, Network, Query
from penstock.model.operators import Input, Map, Operator
from penstock.power.cuts import cut_table
from penstock.power.plan import BOSE, plan_by


def served(deployment: Deployment) -> Deployment:
    """The deployment whose queries for devices give what is broadcast of them.

    One without devices is as it was. The first cut is what the file settles, what it is planned to
    be where the file gives all costs, and otherwise as near the root as can be.
    """
    if deployment.devices is None or not deployment.devices.queries:
        return deployment
    network = server_network(deployment.network, first_cuts(deployment))
    return replace(deployment, network=network, whole=deployment.network)


def first_cuts(deployment: Deployment) -> dict[str, int]:
    """Where queries are cut before anything has been measured."""
    problem, is_known = given_problem(deployment)
    if is_known:
        return {name: int(cut) for name, cut in plan_by(BOSE, cut_table(problem)).cuts.items()}
    return {query.name: problem.cuts_of(query)[-1] for query in problem.queries}


def server_network(network: Network, cuts: Mapping[str, int]) -> Network:
    """The network in which these queries give the intermediate results of their cuts."""
    chains = {name: chain_of(network, name) for name in cuts}
    for name, chain in chains.items():
        chain.shipped(cuts[name])
    copies = [copy_of_source(chain) for name, chain in chains.items() if cuts[name] == 0]
    queries = tuple(
        _cut(query, chains[query.name], cuts[query.name]) if query.name in cuts else query
        for query in network.queries
    )
    shipped = {
        operator.name
        for name, chain in chains.items()
        for operator in chain.operators[cuts[name] :]
    }
    kept = _without(network, shipped, queries)
    return Network(network.streams, (*kept, *copies), queries)


def _cut(query: Query, chain: Chain, cut: int) -> Query:
    stream = chain.stream_at(cut) if cut else raw_name(query.name)
    if cut == len(chain.operators):
        return query
    return replace(query, stream=stream, text="", engine=None, groups=None)


def raw_name(query: str) -> str:
    """The stream that is broadcast where the raw source is."""
    return f"{query}_raw"


def copy_of_source(chain: Chain) -> Map:
    """The operator that gives the raw source of a chain under a name of its own."""
    schema = chain.source_shape.schema
    columns = tuple((field.name, Column(field.name)) for field in schema)
    return Map(raw_name(chain.query), Input(chain.source, chain.source_shape), columns)


def _without(
    network: Network, shipped: set[str], queries: tuple[Query, ...]
) -> tuple[Operator, ...]:
    """The operators without those that are shipped, unless somebody else reads them."""
    wanted = {query.stream for query in queries}
    kept: list[Operator] = []
    for operator in reversed(network.operators):
        if operator.name not in shipped or not wanted.isdisjoint(operator.outputs):
            kept.insert(0, operator)
            wanted |= {read.stream for read in operator.inputs}
    for operator in kept:
        table = getattr(operator, "table", None)
        if getattr(table, "on_devices", False):
            raise InputError(
                f"{operator.name} joins a table of devices, and is needed on the server",
                hint="Let no other query read it, or give the table a file.",
            )
    return tuple(kept)
