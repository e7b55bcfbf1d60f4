"""Probing: a node answers a probe, reserves, and looks for somebody to run what comes next."""

from __future__ import annotations

import math
from collections.abc import Iterable

from penstock.share.answers import Pick, Question, Sites, answer
from penstock.share.discovery import component_key, key_of
from penstock.share.messages import (
    Accepted,
    Arrived,
    Declined,
    Find,
    Located,
    Probe,
    ProbedStep,
    Reason,
    Spent,
    request_of,
)
from penstock.share.turn import Hop, ProbeSearch, Turn


def on_probe(turn: Turn, probe: Probe) -> None:
    """Drops the probe with its reasons, or acknowledges, reserves and goes on."""
    state = turn.state
    if probe.ask in state.heard:
        return
    turn.remember(state.heard, probe.ask)
    step, reasons = _answer(turn, probe)
    if probe.session in state.closed:
        step, reasons = None, ()
    if step is None:
        turn.send(probe.ask[0], Declined(probe.session, probe.ask, probe.credit, reasons))
        return
    turn.send(probe.ask[0], Accepted(probe.session, probe.ask))
    _reserve(turn, probe, step)
    search = ProbeSearch(
        probe.session, probe.composer, probe.plan, probe.reused, probe.needed, probe.anew
    )
    go_on(turn, search, (*probe.steps, step), probe.credit)


def _answer(turn: Turn, probe: Probe) -> tuple[ProbedStep | None, tuple[Reason, ...]]:
    book, plan = turn.state.book, probe.plan
    if probe.operator in probe.reused:
        stream = plan.streams[probe.operator]
        component = book.component_of(stream)
        if component is None:
            return None, (f"stream {stream}",)
        if turn.options.checks_limit and component.time_s > plan.limit_s:
            return None, ("limit",)
        return (
            ProbedStep(
                probe.operator,
                book.node,
                book.promised,
                book.residual(),
                0.0,
                1.0,
                0.0,
                component.time_s,
                lineage=component.lineage,
            ),
            (),
        )
    before = probe.steps[-1] if probe.steps else None
    input = plan.by_name[before.operator] if before is not None else None
    question = Question(
        request_of(probe.session),
        plan.by_name[probe.operator],
        plan.limit_s,
        before,
        input.bandwidth if input else 0.0,
        input.sigma_s if input else 0.0,
        turn.now_s - probe.sent_s,
        probe.is_new,
    )
    return answer(question, book, turn.options)


def _reserve(turn: Turn, probe: Probe, step: ProbedStep) -> None:
    if probe.operator in probe.reused:
        return
    book, request = turn.state.book, request_of(probe.session)
    until_s = turn.now_s + turn.options.reserve_s
    operator = probe.plan.by_name[probe.operator]
    book.reserve(request, operator.name, operator.need, until_s)
    if probe.steps and probe.steps[-1].node != book.node:
        before = probe.steps[-1]
        bandwidth = probe.plan.by_name[before.operator].bandwidth
        edge = (before.operator, operator.name)
        book.reserve_link(request, edge, before.node, bandwidth, until_s)


def go_on(turn: Turn, search: ProbeSearch, steps: tuple[ProbedStep, ...], credit: float) -> None:
    """Looks for the next operators, or tells the composer that a path is complete.

    A second path to the same operator on the same node ends here: the first has gone on from it.
    """
    here = (search.session, steps[-1].operator)
    readers = [
        reader for reader in search.plan.readers[steps[-1].operator] if reader in search.needed
    ]
    if not readers or here in turn.state.explored:
        turn.send(search.composer, Arrived(search.session, steps, credit))
        return
    turn.remember(turn.state.explored, here)
    for reader in readers:
        start_hop(turn, Hop(search, reader, steps, credit / len(readers)))


def start_hop(turn: Turn, hop: Hop) -> None:
    """Asks who can run an operator, and who runs what reads it."""
    token = turn.next_number()
    turn.state.hops[token] = hop
    plan = hop.search.plan
    names = [hop.operator]
    if turn.options.sites is Sites.COLLOCATED:
        names += plan.readers[hop.operator]
    does = [plan.by_name[name].does or name for name in names]
    keys = tuple(dict.fromkeys(map(component_key, does)))
    turn.instructions.append(Find(hop.search.session, token, keys))
    turn.remind(turn.options.answer_s, "hop", (token, 0))


def on_located(turn: Turn, token: int, found: Located) -> None:
    """Candidates are known: some of them are asked, or the operator is deployed."""
    hop = turn.state.hops[token]
    if hop.asked or hop.round:
        return
    plan = hop.search.plan
    does = plan.by_name[hop.operator].does or hop.operator
    candidates = () if hop.search.anew else found.hosts.get(component_key(does), ())
    downstream = [
        node
        for reader in plan.readers[hop.operator]
        for node in found.hosts.get(component_key(plan.by_name[reader].does or reader), ())
    ]
    if hop.may_deploy:
        hop.sites = _sites(turn, hop, downstream)[: turn.options.most_sites]
    ask_some(turn, token, candidates)


def ask_some(turn: Turn, token: int, candidates: tuple[str, ...]) -> None:
    """Asks a share of the candidates, at least one; without any, deploys."""
    hop = turn.state.hops[token]
    if not candidates:
        _deploy_next(turn, token)
        return
    count = max(1, math.ceil(turn.options.probing_ratio * len(candidates) - 1e-9))
    share, hop.pool = hop.pool / count, 0.0
    for node in _pick(turn, hop, candidates, count):
        _ask(turn, token, node, share, is_new=False)
    _await_answers(turn, token)


def _pick(turn: Turn, hop: Hop, candidates: tuple[str, ...], count: int) -> list[str]:
    """The candidates that are asked; every branch of an operator that joins picks the same."""
    delay_s = turn.options.delay_s
    if _joins(hop):
        return sorted(candidates, key=lambda node: key_of(f"{hop.search.session} {node}"))[:count]
    if turn.options.pick is Pick.NEAREST and delay_s is not None:
        here = turn.state.node
        return sorted(candidates, key=lambda node: (delay_s(here, node), node))[:count]
    return turn.rng.sample(candidates, count)


def _ask(turn: Turn, token: int, node: str, credit: float, is_new: bool) -> None:
    hop = turn.state.hops[token]
    search = hop.search
    ask = (turn.state.node, turn.next_number())
    hop.asked.add(ask)
    turn.state.asks[ask] = token
    turn.send(
        node,
        Probe(
            search.session,
            ask,
            search.composer,
            search.plan,
            search.reused,
            search.needed,
            hop.operator,
            hop.steps,
            turn.now_s,
            credit,
            is_new,
            search.anew,
        ),
    )


def _await_answers(turn: Turn, token: int) -> None:
    hop = turn.state.hops[token]
    hop.round += 1
    turn.remind(turn.options.answer_s, "hop", (token, hop.round))


def on_accepted(turn: Turn, message: Accepted) -> None:
    hop = _take_answered(turn, message.ask)
    if hop is not None:
        hop[1].accepted += 1
        _look_on(turn, hop[0])


def on_declined(turn: Turn, message: Declined) -> None:
    hop = _take_answered(turn, message.ask)
    if hop is not None:
        hop[1].pool += message.credit
        hop[1].reasons += message.reasons
        _look_on(turn, hop[0])


def _take_answered(turn: Turn, ask: tuple[str, int]) -> tuple[int, Hop] | None:
    token = turn.state.asks.pop(ask, None)
    hop = turn.state.hops.get(token) if token is not None else None
    if token is None or hop is None:
        return None
    hop.asked.discard(ask)
    return token, hop


def _look_on(turn: Turn, token: int) -> None:
    """Once all have answered: ends the hop if somebody accepted, else tries to deploy."""
    hop = turn.state.hops[token]
    if hop.asked:
        return
    if hop.accepted:
        _end_hop(turn, token)
    else:
        _deploy_next(turn, token)


def on_silence(turn: Turn, token: int, round: int) -> None:
    """Whoever has not answered by now counts as not there."""
    hop = turn.state.hops.get(token)
    if hop is None or hop.round != round:
        return
    for ask in hop.asked:
        turn.state.asks.pop(ask, None)
    hop.asked.clear()
    _look_on(turn, token)


def _deploy_next(turn: Turn, token: int) -> None:
    hop = turn.state.hops[token]
    if not hop.sites:
        _end_hop(turn, token)
        return
    credit, hop.pool = hop.pool, 0.0
    _ask(turn, token, hop.sites.pop(0), credit, is_new=True)
    _await_answers(turn, token)


def _end_hop(turn: Turn, token: int) -> None:
    hop = turn.state.hops.pop(token)
    if hop.pool or not hop.accepted:
        reasons = () if hop.accepted else tuple(dict.fromkeys(hop.reasons))
        turn.send(hop.search.composer, Spent(hop.search.session, hop.pool, reasons))


def _sites(turn: Turn, hop: Hop, downstream: list[str]) -> list[str]:
    """Where an operator that is missing may be deployed, in the order of preference.

    One that joins goes to nodes that all its branches know: its readers', or the composer's.
    """
    here = turn.state.node
    options = turn.options
    if options.sites is Sites.RANDOM:
        others = options.neighbours(here)
        return turn.rng.sample(others, min(1, len(others)))
    if options.sites is not Sites.COLLOCATED:
        near = list(options.neighbours(here))
        return near[:1] if options.sites is Sites.NEAREST_ONLY else near
    if _joins(hop):
        return _once([*sorted(downstream), hop.search.composer])
    upstream = [here] if hop.steps else []
    first, second = upstream, downstream
    if hop.search.plan.by_name[hop.operator].selectivity > 1:
        first, second = downstream, upstream
    path = [step.node for step in reversed(hop.steps)]
    return _once([*first, *second, *options.neighbours(here), *path])


def _joins(hop: Hop) -> bool:
    return len(hop.search.plan.by_name[hop.operator].inputs) > 1


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
