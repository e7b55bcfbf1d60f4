"""The composing node: finds what can be shared, starts probes, selects, and sets up the session."""

from __future__ import annotations

from collections import defaultdict

from penstock.share.discovery import stream_key
from penstock.share.messages import (
    Admitted,
    Arrived,
    Compose,
    Confirm,
    Confirmed,
    Find,
    Finish,
    Located,
    Message,
    NewComponent,
    Refused,
    Released,
    ReleaseSession,
    Spent,
    Unconfirmed,
    request_of,
    session_of,
)
from penstock.share.probing import ask_some, start_hop
from penstock.share.selection import ProbedGraph, ProbedPaths, best_graphs
from penstock.share.turn import Composing, Hop, ProbeSearch, Turn

_ALL = 1 - 1e-9


def on_compose(turn: Turn, message: Compose) -> None:
    """Begins with a request, unless it was heard before."""
    state, request = turn.state, message.request
    if request in state.composing or request in state.sessions or request in state.closed:
        return
    state.composing[request] = Composing(request, message.plan)
    _begin(turn, state.composing[request])


def _begin(turn: Turn, composing: Composing) -> None:
    """Starts an attempt by looking for streams that exist, from the results backwards."""
    composing.phase = "looking up"
    composing.hosts, composing.needed = {}, set()
    composing.credit, composing.graph = 0.0, None
    composing.level = composing.plan.results
    composing.seen = set(composing.level)
    turn.remind(turn.options.collect_s, "collect", (composing.request, composing.attempt))
    _look_up(turn, composing)


def _look_up(turn: Turn, composing: Composing) -> None:
    if not turn.options.reuses or composing.anew:
        composing.needed.update(operator.name for operator in composing.plan.operators)
        _start_probes(turn, composing)
        return
    if not composing.level:
        _start_probes(turn, composing)
        return
    composing.token = turn.next_number()
    streams = composing.plan.streams
    keys = tuple(stream_key(streams[name]) for name in composing.level)
    session = session_of(composing.request, composing.attempt)
    turn.instructions.append(Find(session, composing.token, keys))


def on_streams_located(turn: Turn, composing: Composing, found: Located) -> None:
    """Streams that exist are reused; of the others the inputs are looked up."""
    if composing.token != found.token or composing.phase != "looking up":
        return
    plan = composing.plan
    missing = []
    for name in composing.level:
        hosts = found.hosts.get(stream_key(plan.streams[name]), ())
        if hosts and name not in composing.barred:
            composing.hosts[name] = hosts
        else:
            missing.append(name)
    composing.needed.update(missing)
    inputs = dict.fromkeys(read for name in missing for read in plan.by_name[name].inputs)
    composing.level = tuple(name for name in inputs if name not in composing.seen)
    composing.seen.update(composing.level)
    _look_up(turn, composing)


def _start_probes(turn: Turn, composing: Composing) -> None:
    """Sends probes to where reused streams are, and for operators that read nothing."""
    composing.phase = "probing"
    plan = composing.plan
    search = ProbeSearch(
        session_of(composing.request, composing.attempt),
        turn.state.node,
        plan,
        frozenset(composing.hosts),
        frozenset(composing.needed),
        composing.anew,
    )
    composing.paths = ProbedPaths(plan, search.reused, search.needed)
    first = [op.name for op in plan.operators if op.name in search.needed and not op.inputs]
    share = 1 / (len(composing.hosts) + len(first))
    for name, hosts in composing.hosts.items():
        token = turn.next_number()
        turn.state.hops[token] = Hop(search, name, (), share, may_deploy=False)
        ask_some(turn, token, hosts)
    for name in first:
        start_hop(turn, Hop(search, name, (), share))


def on_arrived(turn: Turn, message: Arrived) -> None:
    composing = _find_probing(turn, message.session)
    if composing is None or composing.paths is None:
        return
    composing.paths.add(message.steps)
    composing.started.add(message.steps[0].operator)
    _credit(turn, composing, message.credit)


def on_spent(turn: Turn, message: Spent) -> None:
    composing = _find_probing(turn, message.session)
    if composing is not None:
        composing.reasons += message.reasons
        _credit(turn, composing, message.credit)


def _find_probing(turn: Turn, session: str) -> Composing | None:
    composing = turn.state.composing.get(request_of(session))
    if composing is None or composing.phase != "probing":
        return None
    return composing if session == session_of(composing.request, composing.attempt) else None


def _credit(turn: Turn, composing: Composing, credit: float) -> None:
    """All credit is back: every probe has come to its end."""
    composing.credit += credit
    if composing.credit >= _ALL:
        _select(turn, composing)


def on_collected(turn: Turn, request: str, attempt: int) -> None:
    """Time is up for paths to come back."""
    composing = turn.state.composing.get(request)
    if composing is None or composing.attempt != attempt:
        return
    if composing.phase == "looking up":
        composing.reasons.append("no answer")
        _refuse(turn, composing)
    elif composing.phase == "probing":
        _select(turn, composing)


def _select(turn: Turn, composing: Composing) -> None:
    """Confirms the best graph, or tries again with less reuse."""
    assert composing.paths is not None
    options = turn.options
    graphs, reasons = best_graphs(composing.paths, options.most_graphs, options.checks_limit)
    if graphs:
        _confirm(turn, composing, graphs[0])
        return
    composing.reasons += reasons
    if not composing.reasons:
        composing.reasons.append("paths do not meet" if composing.started else "no answer")
    _try_again(turn, composing)


def _try_again(turn: Turn, composing: Composing) -> None:
    """Gives up reuse, then existing components, then the request."""
    reused = frozenset(composing.hosts)
    composing.attempt += 1
    if reused:
        fruitless = reused - composing.started
        only = turn.options.gives_up == "refused" and fruitless
        composing.barred |= fruitless if only else reused
    elif turn.options.tries_anew and not composing.anew:
        composing.anew = True
    else:
        _refuse(turn, composing)
        return
    composing.started = set()
    _begin(turn, composing)


def _refuse(turn: Turn, composing: Composing) -> None:
    _close(turn, composing)
    reasons = tuple(sorted(set(composing.reasons)))
    turn.instructions.append(Refused(composing.request, reasons))


def _close(turn: Turn, composing: Composing) -> None:
    del turn.state.composing[composing.request]
    turn.remember(turn.state.closed, composing.request)


def _confirm(turn: Turn, composing: Composing, graph: ProbedGraph) -> None:
    composing.phase = "confirming"
    composing.graph, composing.tries = graph, 0
    composing.confirms = dict(_confirmations(turn, composing, graph))
    _say_confirms(turn, composing)


def _confirmations(turn: Turn, composing: Composing, graph: ProbedGraph) -> dict[str, Message]:
    """For every node of the graph: what it shall run, and which of its components are used."""
    plan = composing.plan
    session = session_of(composing.request, composing.attempt)
    lineage: dict[str, tuple[tuple[str, str], ...]] = {}
    new: dict[str, list[NewComponent]] = defaultdict(list)
    used: dict[str, dict[str, None]] = defaultdict(dict)
    for operator in plan.operators:
        step = graph.steps.get(operator.name)
        if step is None:
            continue
        own = (step.node, f"{session}/{operator.name}")
        if step.lineage:
            lineage[operator.name] = step.lineage
        else:
            before = (each for input in operator.inputs for each in lineage[input])
            lineage[operator.name] = tuple(dict.fromkeys((*before, own)))
            links = tuple(
                (input, graph.steps[input].node, plan.by_name[input].bandwidth)
                for input in operator.inputs
                if graph.steps[input].node != step.node
            )
            new[step.node].append(
                NewComponent(
                    operator.name,
                    own[1],
                    plan.streams[operator.name],
                    operator.does or operator.name,
                    operator.need,
                    operator.tau_s,
                    graph.left_s[operator.name],
                    links,
                    lineage[operator.name],
                    step.is_new,
                )
            )
        for node, name in lineage[operator.name]:
            used[node][name] = None
    return {
        node: Confirm(
            session, turn.state.node, tuple(new[node]), tuple(names), plan.limit_s, graph.time_s
        )
        for node, names in used.items()
    }


def _say_confirms(turn: Turn, composing: Composing) -> None:
    composing.tries += 1
    for node, message in composing.confirms.items():
        turn.send(node, message)
    about = (composing.request, composing.attempt, composing.tries)
    turn.remind(turn.options.confirm_s, "confirm", about)


def on_unheard_confirms(turn: Turn, request: str, attempt: int, tries: int) -> None:
    """Says again what was not acknowledged, then takes everything back."""
    composing = turn.state.composing.get(request)
    if composing is None or composing.phase != "confirming":
        return
    if (composing.attempt, composing.tries) != (attempt, tries):
        return
    if composing.tries < turn.options.confirm_tries:
        _say_confirms(turn, composing)
    else:
        composing.reasons.append("no answer")
        _take_back(turn, composing)


def on_confirmed(turn: Turn, message: Confirmed) -> None:
    composing = _find_confirming(turn, message.session)
    if composing is None or composing.graph is None:
        return
    composing.confirms.pop(message.node, None)
    if composing.confirms:
        return
    graph, request = composing.graph, composing.request
    del turn.state.composing[request]
    turn.state.sessions[request] = (message.session, *_nodes_of(graph))
    turn.instructions.append(
        Admitted(
            request,
            graph.placed,
            graph.time_s,
            graph.phi,
            tuple(name for name, step in graph.steps.items() if step.lineage),
            tuple(name for name, step in graph.steps.items() if step.is_new),
        )
    )


def _nodes_of(graph: ProbedGraph) -> tuple[str, ...]:
    """All nodes a graph uses, those of what it reuses included."""
    own = [step.node for step in graph.steps.values()]
    shared = [node for step in graph.steps.values() for node, _ in step.lineage]
    return tuple(dict.fromkeys((*own, *shared)))


def _find_confirming(turn: Turn, session: str) -> Composing | None:
    composing = turn.state.composing.get(request_of(session))
    if composing is None or composing.phase != "confirming":
        return None
    return composing if session == session_of(composing.request, composing.attempt) else None


def on_unconfirmed(turn: Turn, message: Unconfirmed) -> None:
    composing = _find_confirming(turn, message.session)
    if composing is not None:
        composing.reasons.append(message.reason)
        _take_back(turn, composing)


def _take_back(turn: Turn, composing: Composing) -> None:
    """Ends what was confirmed; the request goes on when all nodes have said so."""
    assert composing.graph is not None
    composing.phase = "taking back"
    session = session_of(composing.request, composing.attempt)
    _release(turn, session, _nodes_of(composing.graph))


def on_finish(turn: Turn, message: Finish) -> None:
    """Ends an admitted application; one that is not there is over already."""
    found = turn.state.sessions.pop(message.request, None)
    if found is not None:
        turn.remember(turn.state.closed, message.request)
        _release(turn, found[0], found[1:])


def _release(turn: Turn, session: str, nodes: tuple[str, ...]) -> None:
    turn.state.releasing[session] = set(nodes)
    say_releases(turn, session)


def say_releases(turn: Turn, session: str) -> None:
    """Says it to those that have not acknowledged, again and again."""
    waiting = turn.state.releasing.get(session)
    if not waiting:
        return
    for node in sorted(waiting):
        turn.send(node, ReleaseSession(session, turn.state.node))
    turn.remind(turn.options.confirm_s, "release", session)


def on_released(turn: Turn, message: Released) -> None:
    waiting = turn.state.releasing.get(message.session)
    if waiting is None:
        return
    waiting.discard(message.node)
    if waiting:
        return
    del turn.state.releasing[message.session]
    composing = turn.state.composing.get(request_of(message.session))
    if composing is not None and composing.phase == "taking back":
        _try_again(turn, composing)
