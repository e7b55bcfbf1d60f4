"""A file run on several nodes, as submissions: one for the queries that were there at first, and
for each time that some were added since one for all that read the same streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.app.run_plan import RunPlan
from penstock.control.catalog import Catalog
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.recorded_plans import plan_text
from penstock.control.system import System, assemble
from penstock.control.system_balance import balance_of_file
from penstock.errors import InputError, listed
from penstock.lang.deployment import deployment_yaml
from penstock.model.canonical import plan_signature
from penstock.model.network import Deployment, Network, Query

_AFRESH = "Run with --fresh to start over"


@dataclass(frozen=True)
class RunPart:
    """The queries of a file that were added together, with all that is behind them."""

    name: str
    generation: int
    deployment: Deployment

    @property
    def queries(self) -> list[str]:
        return [query.name for query in self.deployment.network.queries]

    @property
    def text(self) -> str:
        """The part as a deployment file of its own."""
        return deployment_yaml(self.deployment, show_passwords=True)


def run_parts(plan: RunPlan) -> tuple[RunPart, ...]:
    """The parts of a plan, oldest first. They share streams from outside and nothing else.

    Queries added later are apart by the streams they read: where one cannot be read again, only
    what reads it has to begin now.
    """
    numbers = sorted({plan.generations[query.name] for query in plan.network.queries})
    return tuple(part for number in numbers for part in _parts(plan, number))


def _parts(plan: RunPlan, generation: int) -> list[RunPart]:
    name, queries = plan.deployment.name, plan.network.queries
    members = [query for query in queries if plan.generations[query.name] == generation]
    if generation == 0:
        return [_part(plan, name, generation, members)]
    groups = _by_streams_read(plan.network, members)
    names = [f"{name}.{generation}", *(f"{name}.{generation}.{at}" for at in range(1, len(groups)))]
    return [
        _part(plan, called, generation, group) for called, group in zip(names, groups, strict=True)
    ]


def _by_streams_read(network: Network, queries: list[Query]) -> list[list[Query]]:
    """Queries in groups: those that read the same streams from outside, or share an operator."""
    outside = {stream.name for stream in network.streams}
    order = {query.name: at for at, query in enumerate(queries)}
    groups: list[tuple[list[Query], frozenset[str]]] = []
    for query in queries:
        members, behind = [query], network.upstream([query.stream])
        apart = []
        for group, theirs in groups:
            if theirs & outside == behind & outside or theirs & behind - outside:
                members, behind = group + members, theirs | behind
            else:
                apart.append((group, theirs))
        groups = [*apart, (members, behind)]
    found = [members for members, _ in groups]
    return sorted(found, key=lambda members: order[members[0].name])


def _part(plan: RunPlan, name: str, generation: int, queries: list[Query]) -> RunPart:
    network = plan.network
    behind = network.upstream(query.stream for query in queries)
    operators = [
        operator for operator in network.operators if not behind.isdisjoint(operator.outputs)
    ]
    streams = [stream for stream in network.streams if stream.name in behind]
    own = Network(tuple(streams), tuple(operators), tuple(queries))
    return RunPart(name, generation, replace(plan.deployment, network=own))


def keep_in_line(plan: RunPlan, home: Home) -> None:
    """Has a system that does not run know its parts as they are written now.

    What has to do with state must be as it was: raises where a query or a stream behind it has
    changed, or where a query is gone.
    """
    if not home.path.exists():
        return
    with closing(Catalog(home.catalog_url)) as catalog:
        catalog.prepare()
        known = catalog.submissions()
        texts = {part.name: part.text for part in run_parts(plan)}
        wanted = [
            replace(submission, text=texts[submission.name])
            for submission in known
            if submission.name in texts
        ]
        before, after = assemble(known), assemble(wanted)
        _check_same(before, after, home.path)
        for other in wanted:
            planned = plan_text(after, other.id)
            catalog.rewrite(other.id, other.text, planned, _nodes_written(after, other.id))
            said = after.deployments[other.id].balance
            balance = balance_of_file(catalog, other.name, said)
            if balance is not None:
                catalog.offer_balance(balance)


def _nodes_written(system: System, submission: int) -> dict[str, str | None]:
    units = (unit for unit in system.units.values() if unit.submission == submission)
    return {unit.name: unit.on for unit in units if unit.fragment is not None}


def _check_same(before: System, after: System, folder: Path) -> None:
    """Raises if what is to go on is not what its state is of."""
    gone = sorted(set(before.queries) - set(after.queries))
    if gone:
        raise InputError(
            f"{listed(gone)} {'is' if len(gone) == 1 else 'are'} in the state in {folder}, "
            "and no longer in the file",
            hint=f"{_AFRESH}, or write what is missing again.",
        )
    former, present = _signatures(before), _signatures(after)
    for name in sorted({*former, *present}):
        if former.get(name) != present.get(name):
            raise InputError(
                f"{name} has changed since its state in {folder} was written",
                hint=f"{_AFRESH}, or give the changed query a new name.",
            )


def _signatures(system: System) -> dict[str, str]:
    units = system.units.values()
    return {
        unit.name: plan_signature(unit.network, unit.fragment) for unit in units if unit.fragment
    }


def submit_parts(client: Client, parts: Iterable[RunPart], folder: Path) -> Iterator[str]:
    """Submits the parts that the system does not have yet; yields what is to be said of them."""
    known = {query.name for query in client.queries()}
    for part in parts:
        if part.name not in known:
            yield from _submitted(client, part, folder)


def _submitted(client: Client, part: RunPart, folder: Path) -> Iterator[str]:
    if part.generation == 0:
        client.submit(part.name, "yaml", part.text, str(folder), share=False)
        return
    try:
        made = client.submit(part.name, "yaml", part.text, str(folder), start="start", share=False)
    except InputError as error:
        yield from _submitted_late(client, part, folder, error)
        return
    again = sorted({fragment.partition(".")[0] for fragment in made.fragments if "." in fragment})
    if again:
        yield f"added since: {listed(part.queries)}; read again from the start: {listed(again)}"


def _submitted_late(
    client: Client, part: RunPart, folder: Path, refusal: InputError
) -> Iterator[str]:
    """Has a part count from now on, where its streams cannot be read again."""
    try:
        made = client.submit(part.name, "yaml", part.text, str(folder), share=False)
    except InputError as error:
        if error.what == refusal.what:
            raise refusal from None
        raise InputError(f"{refusal.what}; {error.what}", hint=f"{_AFRESH}.") from None
    for begin in made.begins:
        names = listed(begin.queries) or begin.fragment
        yield f"{names} {_since(begin.since)}: {refusal.what}"


def _since(moment: str | None) -> str:
    if moment is None:
        return "sees rows from the next batch on"
    return f"counts after {moment}, event time"
