"""Many requests at once on an overlay that loses, doubles and delays messages.

An omniscient oracle adds up everything anew at every event: nothing is overbooked, every probe that
is dropped is dropped for true reasons, and in the end nothing is left over.
``PENSTOCK_REQUESTS=5000 pytest tests/sim/test_overlay.py`` tries more of them at once.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest

from penstock.share.answers import CompositionOptions
from penstock.share.messages import (
    Admitted,
    Compose,
    Declined,
    Envelope,
    Finish,
    Message,
    Probe,
    Refused,
    request_of,
)
from penstock.share.node_book import NodeBook
from penstock.share.turn import NodeComposition
from penstock.sim.overlay import Faults, Overlay
from share.overlays import DELAY_S, chain, overlay_of, random_plan

pytestmark = pytest.mark.core

REQUESTS = int(os.environ.get("PENSTOCK_REQUESTS", "80"))
FAULTS = {
    "none": Faults(),
    "lost": Faults(loss=0.1),
    "doubled and late": Faults(doubling=0.2, lateness_s=1.5),
    "all": Faults(loss=0.05, doubling=0.1, lateness_s=0.5),
}


def taken(book: NodeBook, now_s: float) -> tuple[float, float, dict[str, float]]:
    """Booked, booked and reserved, and the use of every link: added up from what there is."""
    booked = book.background + sum(one.need for one in book.components.values())
    promised = booked
    links: dict[str, float] = defaultdict(float)
    for component in book.components.values():
        for upstream, bandwidth in component.links:
            links[upstream] += bandwidth
    for held in book.held.values():
        if held.until_s > now_s:
            if held.upstream:
                links[held.upstream] += held.amount
            else:
                promised += held.amount
    return booked, promised, links


def true_reasons(now_s: float, probe: Probe, book: NodeBook) -> set[str]:
    """All that speaks against a probe, in the plainest words."""
    request, plan = request_of(probe.session), probe.plan
    if probe.operator in probe.reused:
        components = [
            c for c in book.components.values() if c.stream == plan.streams[probe.operator]
        ]
        if not components:
            return {f"stream {plan.streams[probe.operator]}"}
        return {"limit"} if components[0].time_s > plan.limit_s else set()
    booked, promised, links = taken(book, now_s)
    operator = plan.by_name[probe.operator]
    own = book.held.get((request, operator.name, ""))
    more = 0.0 if own is not None and own.until_s > now_s else operator.need
    found = set()
    if promised + more > book.capacity + 1e-9:
        found.add(f"node {book.node}")
    time_s = 0.0
    if probe.steps:
        before = probe.steps[-1]
        time_s = before.left_s
        if before.node != book.node:
            sent = plan.by_name[before.operator]
            edge = book.held.get((request, operator.name, f"{before.operator}@{before.node}"))
            extra = 0.0 if edge is not None and edge.until_s > now_s else sent.bandwidth
            if links[before.node] + extra > book.link_capacity + 1e-9:
                found.add(f"link {before.node}-{book.node}")
            load = links[before.node] + extra
            time_s += now_s - probe.sent_s + (sent.sigma_s / (1 - load) if load < 1 else inf)
    after = promised + more
    time_s += operator.tau_s / (1 - after) if after < 1 else inf
    if time_s > plan.limit_s + 1e-9:
        found.add("limit")
    for name, app in book.apps.items():
        stretch = inf if after >= 1 else 1 / (1 - after) - 1 / (1 - booked)
        if app.time_s + app.tau_s * stretch > app.limit_s + 1e-9:
            found.add(f"app {name}")
    return found


@dataclass
class Oracle(Overlay):
    """An overlay that is looked at by somebody who sees everything."""

    told: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    expected: dict[tuple[str, int], list[set[str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    trace: list[tuple[float, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.watch = self.look

    def look(self, now_s: float, node: str, message: Message, state: NodeComposition) -> None:
        self.trace.append((now_s, node, type(message).__name__))
        _, promised, links = taken(state.book, now_s)
        assert promised <= state.book.capacity + 1e-6, f"{node} is overbooked at {now_s}"
        for upstream, used in links.items():
            assert used <= state.book.link_capacity + 1e-6, f"link {upstream}-{node} is overbooked"
        if isinstance(message, Probe):
            # A doubled one is answered each time it comes; the later, the less time there is left.
            self.expected[message.ask].append(true_reasons(now_s, message, state.book))

    def _deliver(self, sender: str, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, Declined) and message.reasons:
            assert set(message.reasons) in self.expected[message.ask]
            self.told[request_of(message.session)].update(message.reasons)
        super()._deliver(sender, envelope)


def crowded(
    seed: int, faults: Faults, requests: int = REQUESTS, link_capacity: float = 1.0
) -> Oracle:
    """Requests that all come within a second, on too few nodes, and end some time later."""
    rng = Random(seed)
    plain = overlay_of(nodes=8, kinds=6, copies=3, seed=seed, link_capacity=link_capacity)
    overlay = Oracle(plain.books, plain.protocol, lambda one, other: DELAY_S, seed, faults)
    need = 3.0 / requests
    for at in range(requests):
        node = f"v{rng.randrange(8)}"
        overlay.submit(rng.random(), node, Compose(f"r{at}", random_plan(rng, 6, need)))
        overlay.submit(40 + 20 * rng.random(), node, Finish(f"r{at}"))
    overlay.run()
    return overlay


@pytest.mark.parametrize("faults", FAULTS)
def test_nothing_is_overbooked_and_nothing_is_left_over(faults: str) -> None:
    check_settled(crowded(7, FAULTS[faults]), faults)


@pytest.mark.parametrize("faults", FAULTS)
def test_links_are_not_overbooked_either(faults: str) -> None:
    # A node's link takes two streams; there are processors enough.
    overlay = crowded(5, FAULTS[faults], link_capacity=0.1)
    check_settled(overlay, faults)
    assert any(reason.startswith("link ") for told in overlay.told.values() for reason in told)


def check_settled(overlay: Oracle, faults: str) -> None:
    """Every request has been answered, with a true reason if refused, and nothing is left over."""
    results = [outcome.result for outcome in overlay.outcomes.values()]
    assert len(results) == REQUESTS, "every request gets an answer"
    admitted = [result for result in results if isinstance(result, Admitted)]
    refused = [result for result in results if isinstance(result, Refused)]
    assert admitted and refused
    allowed = {"limit", "no answer", "paths do not meet"}
    for one in refused:
        assert one.reasons
        assert set(one.reasons) <= overlay.told[one.request] | allowed | _graph_reasons(one)
        if faults == "none":
            assert "no answer" not in one.reasons
    for state in overlay.nodes.values():
        book = state.book
        assert not (book.held or book.components or book.apps or book.streams)
        assert (book.booked, book.reserved, book.reserved_for) == (0.0, 0.0, {})
        assert not any(abs(used) > 1e-9 for used in book.link_used.values())
        assert not (state.hops or state.asks or state.composing or state.releasing or state.running)
    assert len(overlay.ring) == 6  # type: ignore[arg-type]  # what nodes always offer


def _graph_reasons(refused: Refused) -> set[str]:
    """A graph whose operators fit one by one may not fit together; a stream may have ended."""
    return {
        reason
        for reason in refused.reasons
        if reason.split()[0] in ("node", "link", "stream", "release")
    }


def test_the_same_seed_gives_the_same_run() -> None:
    one, other, third = (crowded(seed, FAULTS["all"], 20) for seed in (3, 3, 4))
    assert one.trace == other.trace != third.trace
    assert one.outcomes == other.outcomes


def test_an_answer_that_is_lost_is_waited_for_a_limited_time() -> None:
    options = CompositionOptions(probing_ratio=1.0, tries_anew=False)
    overlay = overlay_of(options=options, faults=Faults(loss=1.0))
    overlay.submit(0.0, "v0", Compose("q", chain("k0", "k1")))
    overlay.run()
    outcome = overlay.outcomes["q"]
    assert isinstance(outcome.result, Refused) and outcome.result.reasons == ("no answer",)
    assert outcome.took_s <= 2 * options.collect_s
    assert not any(book.held for book in overlay.books)
