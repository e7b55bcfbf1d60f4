"""A node's answer to a probe: the three conditions, decided from what the node knows itself.

The same function answers in the simulator, in a controller that knows all nodes, and on a node
that is asked by messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from penstock.model.composition import PlanOperator
from penstock.share.messages import ProbedStep, Reason
from penstock.share.node_book import NodeBook
from penstock.share.projection import NodeLoad, execution_time_s, transmission_time_s


class Pick(StrEnum):
    """Which candidates are asked: those nearest, or any."""

    NEAREST = "nearest"
    RANDOM = "random"


class Sites(StrEnum):
    """Where missing components go: beside a neighbour in the plan, near upstream, or anywhere."""

    COLLOCATED = "collocated"
    NEAREST = "nearest"
    NEAREST_ONLY = "nearest-only"
    RANDOM = "random"


@dataclass(frozen=True)
class CompositionOptions:
    """How requests are composed; the defaults are the source's, rivals leave things out.

    ``probing_ratio``: the share of an operator's candidates that are asked, at least one.
    ``gives_up``: what is left out when a reused stream is refused: all reuse (the source), or only
    the streams that led to nothing. ``delay_s`` and ``neighbours``: what is known of the network.
    Times: how long a reservation is held, an answer waited for, paths collected, a message said
    again, and a session that is over remembered.
    """

    probing_ratio: float = 0.1
    reuses: bool = True
    checks_limit: bool = True
    projects: bool = True
    pick: Pick = Pick.RANDOM
    sites: Sites = Sites.COLLOCATED
    gives_up: Literal["all", "refused"] = "all"
    tries_anew: bool = True
    neighbours: Callable[[str], tuple[str, ...]] = lambda _: ()
    delay_s: Callable[[str, str], float] | None = None
    most_sites: int = 8
    most_graphs: int = 64
    reserve_s: float = 8.0
    answer_s: float = 1.0
    collect_s: float = 5.0
    confirm_s: float = 1.0
    confirm_tries: int = 4
    remember_s: float = 60.0


class Question(NamedTuple):
    """What is asked of a node: to run an operator behind a step of a path, for a request."""

    request: str
    operator: PlanOperator
    limit_s: float
    before: ProbedStep | None = None
    bandwidth: float = 0.0
    sigma_s: float = 0.0
    travel_s: float = 0.0
    is_new: bool = False


def answer(
    question: Question, book: NodeBook, options: CompositionOptions
) -> tuple[ProbedStep | None, tuple[Reason, ...]]:
    """The step this node would be, or the reasons why not.

    What the request has reserved on the node already is not asked for twice. The reasons are all
    that hold, not just the first.
    """
    operator, before = question.operator, question.before
    need = 0.0 if book.holds(question.request, operator.name) else operator.need
    reasons = [] if book.fits(need) else [f"node {book.node}"]
    link_load, link_residual, on_link_s = 0.0, 1.0, 0.0
    if before is not None and before.node != book.node:
        edge = (before.operator, operator.name)
        is_held = book.holds_link(question.request, edge, before.node)
        asked = 0.0 if is_held else question.bandwidth
        if not book.link_fits(before.node, asked):
            reasons.append(f"link {before.node}-{book.node}")
        link_residual = book.link_residual(before.node) + (question.bandwidth if is_held else 0.0)
        link_load = book.link_capacity - link_residual
        on_link_s = question.travel_s + transmission_time_s(
            question.sigma_s, link_load + question.bandwidth
        )
    arrived_s = (before.left_s if before is not None else 0.0) + on_link_s
    left_s = arrived_s + execution_time_s(operator.tau_s, NodeLoad(book.promised + need))
    if options.checks_limit and not left_s <= question.limit_s:
        reasons.append("limit")
    if options.projects:
        reasons += [f"app {name}" for name in book.broken_apps(need)]
    if reasons:
        return None, tuple(reasons)
    own = book.reserved_by(question.request)
    return (
        ProbedStep(
            operator.name,
            book.node,
            book.promised - own,
            book.residual() + own,
            link_load,
            link_residual,
            question.travel_s if on_link_s else 0.0,
            left_s,
            question.is_new,
        ),
        (),
    )
