"""What nodes say to each other while they compose a query, and what they want done.

A request is composed in one or more attempts; a *session* is one of them, ``request~attempt``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.model.composition import QueryPlan

Ask = tuple[str, int]
"""Who asks, and a number: names a question."""

Reason = str
"""Why something was refused: "node v", "link v-w", "limit", "app a", "stream s" (it has ended),
"paths do not meet", "no answer"."""


class ProbedStep(NamedTuple):
    """One operator of a probed path: where it would run and what that node said about itself.

    ``load`` and ``residual`` do not count what this request has reserved there. ``link_load`` is
    that of the link from the step before; ``left_s`` is when a tuple has left the operator.
    ``lineage`` is that of a stream that exists; ``is_new`` marks what would have to be deployed.
    """

    operator: str
    node: str
    load: float
    residual: float
    link_load: float
    link_residual: float
    travel_s: float
    left_s: float
    is_new: bool = False
    lineage: tuple[tuple[str, str], ...] = ()


def session_of(request: str, attempt: int) -> str:
    """The name of an attempt.

    >>> session_of("q1", 2), request_of(session_of("q1", 2))
    ('q1~2', 'q1')
    """
    return f"{request}~{attempt}"


def request_of(session: str) -> str:
    return session.rpartition("~")[0]


class Compose(NamedTuple):
    """A request, to the node that composes it."""

    request: str
    plan: QueryPlan


class Located(NamedTuple):
    """The answer to a :class:`Find`."""

    session: str
    token: int
    hosts: Mapping[str, tuple[str, ...]]


class Probe(NamedTuple):
    """May this operator run on this node, behind these steps?

    ``credit`` is its share of the search. ``reused`` are the operators whose streams exist;
    nothing upstream of them is asked for.
    """

    session: str
    ask: Ask
    composer: str
    plan: QueryPlan
    reused: frozenset[str]
    needed: frozenset[str]
    operator: str
    steps: tuple[ProbedStep, ...]
    sent_s: float
    credit: float
    is_new: bool = False
    anew: bool = False


class Accepted(NamedTuple):
    """A probe qualified and goes on from there."""

    session: str
    ask: Ask


class Declined(NamedTuple):
    """A probe was dropped; its credit comes back."""

    session: str
    ask: Ask
    credit: float
    reasons: tuple[Reason, ...]


class Arrived(NamedTuple):
    """A path to the composer: complete, or up to an operator that another probe went on from."""

    session: str
    steps: tuple[ProbedStep, ...]
    credit: float


class Spent(NamedTuple):
    """Credit of a search that ended without a path, to the composer, with the reasons."""

    session: str
    credit: float
    reasons: tuple[Reason, ...]


class NewComponent(NamedTuple):
    """What a node is to run for good, out of what it has reserved."""

    operator: str
    name: str
    stream: str
    does: str
    need: float
    tau_s: float
    time_s: float
    links: tuple[tuple[str, str, float], ...]
    lineage: tuple[tuple[str, str], ...]
    is_new: bool


class Confirm(NamedTuple):
    """Reservations become permanent; the application uses these streams of the node from now on."""

    session: str
    composer: str
    components: tuple[NewComponent, ...]
    uses: tuple[str, ...]
    limit_s: float
    time_s: float


class Confirmed(NamedTuple):
    session: str
    node: str


class Unconfirmed(NamedTuple):
    """A reservation had expired, or a stream to be reused had ended."""

    session: str
    node: str
    reason: Reason


class ReleaseSession(NamedTuple):
    """Ends all that an application has on a node; said again until it is acknowledged."""

    session: str
    composer: str


class Released(NamedTuple):
    session: str
    node: str


class Finish(NamedTuple):
    """An application is over; to the node that composed it."""

    request: str


class Measured(NamedTuple):
    """The end-to-end time of an application as its receiver measured it."""

    request: str
    time_s: float


Message = (
    Compose
    | Located
    | Probe
    | Accepted
    | Declined
    | Arrived
    | Spent
    | Confirm
    | Confirmed
    | Unconfirmed
    | ReleaseSession
    | Released
    | Finish
    | Measured
)


class Envelope(NamedTuple):
    """A message and the node it is for."""

    to: str
    message: Message


class Find(NamedTuple):
    """Instruction: look up who is registered under these keys; a :class:`Located` comes back."""

    session: str
    token: int
    keys: tuple[str, ...]


class Register(NamedTuple):
    """Instruction: others may find this node under this key."""

    key: str


class Unregister(NamedTuple):
    """Instruction: and no longer."""

    key: str


class Admitted(NamedTuple):
    """Instruction: tell who asked that the request runs: which operator where, and how fast.

    ``reused`` are the operators whose streams were there already, ``new`` those deployed.
    """

    request: str
    graph: Mapping[str, str]
    time_s: float
    phi: float
    reused: tuple[str, ...]
    new: tuple[str, ...]


class Refused(NamedTuple):
    """Instruction: tell who asked that the request does not run, and why."""

    request: str
    reasons: tuple[Reason, ...]


Instruction = Find | Register | Unregister | Admitted | Refused
