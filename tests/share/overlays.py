"""Random plans on small overlays, for tests of the composition protocol."""

from __future__ import annotations

from random import Random

from penstock.model.composition import PlanOperator, QueryPlan
from penstock.share.answers import CompositionOptions
from penstock.share.node_book import NodeBook
from penstock.share.protocol import CompositionProtocol
from penstock.sim.overlay import Faults, Overlay

DELAY_S = 0.01


def nodes_named(count: int) -> list[str]:
    return [f"v{at}" for at in range(count)]


def overlay_of(
    nodes: int = 10,
    kinds: int = 5,
    copies: int = 3,
    seed: int = 1,
    options: CompositionOptions | None = None,
    faults: Faults | None = None,
    background: float = 0.0,
    link_capacity: float = 1.0,
) -> Overlay:
    """Nodes that offer ``copies`` components of each of ``kinds`` operators."""
    rng = Random(seed)
    names = nodes_named(nodes)
    offered: dict[str, set[str]] = {name: set() for name in names}
    for kind in range(kinds):
        for name in rng.sample(names, copies):
            offered[name].add(f"k{kind}")
    books = [
        NodeBook(
            name,
            background=background,
            permanent=frozenset(offered[name]),
            link_capacity=link_capacity,
        )
        for name in names
    ]
    chosen = options or CompositionOptions(
        probing_ratio=0.5, neighbours=lambda node: tuple(n for n in names if n != node)[:3]
    )
    return Overlay(
        books,
        CompositionProtocol(chosen),
        lambda one, other: DELAY_S,
        seed=seed,
        faults=faults or Faults(),
    )


def chain(*kinds: str, need: float = 0.1, limit_s: float = 1.0, **more: float) -> QueryPlan:
    """A plan in which every operator reads the one before it."""
    operators = []
    for at, kind in enumerate(kinds):
        inputs = (f"o{at - 1}",) if at else ()
        operators.append(PlanOperator(f"o{at}", inputs, need, 0.01, 0.05, 0.001, does=kind, **more))
    return QueryPlan(tuple(operators), limit_s)


def diamond(kinds: tuple[str, str, str, str], need: float = 0.1, limit_s: float = 1.0) -> QueryPlan:
    """One operator read by two, which a fourth joins."""
    a, b, c, d = kinds
    return QueryPlan(
        (
            PlanOperator("a", (), need, 0.01, 0.05, 0.001, does=a),
            PlanOperator("b", ("a",), need, 0.01, 0.05, 0.001, does=b),
            PlanOperator("c", ("a",), need, 0.01, 0.05, 0.001, does=c),
            PlanOperator("d", ("b", "c"), need, 0.01, 0.05, 0.001, does=d),
        ),
        limit_s,
    )


def random_plan(rng: Random, kinds: int, need: float = 0.02) -> QueryPlan:
    names = [f"k{at}" for at in range(kinds + 1)]  # The last one nobody offers.
    limit_s = rng.choice((0.15, 0.4, 2.0))
    if rng.random() < 0.3:
        a, b, c, d = (rng.choice(names) for _ in range(4))
        return diamond((a, b, c, d), need * rng.choice((1, 2)), limit_s)
    picked = [rng.choice(names) for _ in range(rng.randint(1, 4))]
    return chain(*picked, need=need * rng.choice((1, 2)), limit_s=limit_s)
