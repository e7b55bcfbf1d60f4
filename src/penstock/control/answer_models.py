"""What the REST API takes and answers, as models: the same on both sides of it.

Events and measurements are answered as the records that the catalog keeps of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from penstock.control.api_model import ApiModel
from penstock.control.records import (
    BalanceSetter,
    Mover,
    MoveRecord,
    MoveState,
    SubmissionKind,
    UnitKind,
)
from penstock.control.sharing_models import AdmissionAnswer, SharingAnswer
from penstock.model.beginnings import StartKind
from penstock.model.measurements import FragmentStatus, UnitSample

MOST = 2**62
"""As far as databases count."""

NodeState = Literal["up", "gone", "starting"]
ShownState = Literal[
    "waiting",
    "starting",
    "running",
    "held back",
    "finished",
    "failed",
    "released",
    "unread",
    "unreadable",
]
"""What a fragment, an intake or a submission is said to be."""


class SubmitRequest(ApiModel):
    """A deployment file or a single query to be run; ``start`` is since when it counts.

    With ``replace`` one of the same name is stopped and forgotten, if this one can be taken in.
    With ``share`` it reads what runs already of others. One that does not fit is taken in with
    ``force``; with ``dry_run`` it is said what would come of it, and nothing is done.
    """

    name: str = Field(max_length=200)
    kind: SubmissionKind
    text: str = Field(max_length=1_000_000)
    folder: str = "."
    max_latency_us: int | None = Field(None, gt=0, le=MOST)
    start: StartKind = "now"
    replace: bool = False
    share: bool = True
    force: bool = False
    dry_run: bool = False


class FragmentMove(ApiModel):
    """A fragment, or groups of a join such as ``pairs:3,7``, that is to be on another node."""

    fragment: str
    node: str
    reason: str = "asked for"


class Refusal(ApiModel):
    """Why something was not done.

    ``error`` says what happened, ``hint`` what to do, ``text`` both, with the place in what was
    written if it is about one; ``exit_code`` is the command line's.
    """

    error: str
    hint: str
    text: str
    exit_code: int


class NodeAnswer(ApiModel):
    """A node: what it has, what it uses, and what was given to it.

    ``heard`` is how old, in seconds, what it has heard from each of the other nodes is;
    ``parent`` the one above it where nodes form a tree.
    """

    name: str
    state: NodeState
    cores: int
    memory_limit_bytes: int
    pid: int
    version: str
    utilisation: float
    memory_bytes: int
    heard: dict[str, float]
    runs: list[str]
    parent: str | None = None


class BeginAnswer(ApiModel):
    """Since when the queries of a fragment count.

    ``since`` is the event time after which they do; null where they count from the first row on,
    or, if ``untimed``, from the first batch after they were submitted.
    """

    fragment: str
    queries: list[str]
    start: Annotated[StartKind, Field(alias="from")]
    since: str | None
    untimed: bool


class QueryAnswer(ApiModel):
    """A submission with its queries, fragments and intakes.

    One that was dropped is ``kept_for`` others, as far as they share it: its queries are gone.
    ``shares`` are the submissions of which it reads something that it would compute itself.
    ``shares`` are the submissions of which it reads something that it would compute itself.
    ``projected_s`` is how old its results were expected to be when it was taken in, ``measured_s``
    how old the oldest are.
    """

    name: str
    queries: list[str]
    fragments: list[str]
    begins: list[BeginAnswer]
    nodes: list[str]
    state: ShownState
    kept_for: list[str] = Field(default_factory=list)
    shares: list[str] = Field(default_factory=list)
    projected_s: float | None = None
    measured_s: float | None = None


class Unmeasured(ApiModel):
    """Nothing was measured yet."""

    model_config = ConfigDict(extra="forbid")


class FragmentAnswer(ApiModel):
    """A fragment or an intake: where it is, how it does, what was last measured.

    ``belongs`` is the node it goes back to, ``limit_s`` how long its results may take, ``late``
    whether they take longer, ``limit_share`` how much of that they take. ``watermark_gap_s`` is how
    far its watermark is behind the clock, ``cpu_share`` its part of the processor time of all.
    """

    name: str
    kind: UnitKind
    node: str | None
    belongs: str | None
    state: ShownState
    notes: list[str]
    limit_s: float | None
    late: bool
    epoch: int
    error: str
    restarts: int
    restarts_at_most: int
    since: str | None
    untimed: bool
    measured: UnitSample | Unmeasured
    limit_share: float | None = None
    watermark_gap_s: float | None = None
    cpu_share: float | None = None

    @property
    def status(self) -> FragmentStatus | None:
        """What was measured of a fragment; of an intake only its cost is known."""
        return self.measured if isinstance(self.measured, FragmentStatus) else None


class OperatorAnswer(ApiModel):
    """An operator of a fragment that runs: its rows, and what one costs by estimate."""

    operator: str
    kind: str
    fragment: str
    node: str | None
    rows_in: float | None
    rows_out: float | None
    rows_in_per_s: float | None
    rows_out_per_s: float | None
    selectivity: float | None
    cost_us: float | None


class PartAnswer(ApiModel):
    """A part of a join: the groups it owns, those on their way to it, and how it fares.

    ``occupancy`` is how full it is of rows that it has not read, from 0 to 1; ``rows_held`` are the
    rows in its windows and ``bytes_held`` the runs made of them.
    """

    fragment: str
    node: str | None
    groups: list[int]
    arriving: list[int]
    occupancy: float
    rows_in_per_s: float
    rows_held: int
    bytes_held: int
    has_ended: bool


class JoinAnswer(ApiModel):
    """A join in parts; ``moved`` of its groups are not where they were at first, or were away."""

    name: str
    spread: int | Literal["auto"]
    groups: int
    moved: int
    parts: list[PartAnswer]


class MoveAnswer(ApiModel):
    """A fragment, an intake or groups of a join on the way, how far, and who wanted it.

    ``numbers`` is what the decision rests on, and what the time was spent on. ``pause_s`` is how
    long nobody worked on it.
    """

    id: int
    unit: str
    source: str
    target: str
    state: MoveState
    is_warm: bool
    created_s: float
    ended_s: float | None
    pause_s: float | None
    reason: str
    numbers: dict[str, Any]
    error: str
    by: Mover

    @classmethod
    def of(cls, move: MoveRecord) -> MoveAnswer:
        """What is said of a move that the catalog knows."""
        return cls(**vars(move), by=move.by)


class NegotiationPart(ApiModel):
    """A neighbour's part in a negotiation: what it was offered or asked for, and what it took.

    Fragments that go together, each time with what they take of a node in percent: those that were
    ``offered`` to it, those that it ``agreed`` to take or could give, and those that were
    ``chosen``. ``moved`` have changed hands; ``why`` says what became of it.
    """

    node: str
    offered: list[tuple[list[str], float]]
    size: float
    answer: str
    urgency: str
    agreed: list[tuple[list[str], float]]
    chosen: list[tuple[list[str], float]]
    moved: list[str]
    why: str


class NegotiationAnswer(ApiModel):
    """A negotiation, as the node saw it that began it; loads are percent of a node."""

    name: str
    node: str
    kind: Literal["offer", "demand"]
    at_s: float
    utilisation: float
    lower: float
    upper: float
    peers: list[NegotiationPart]
    text: str


class SetAsideAnswer(ApiModel):
    """What could not be used of a stream: rows by kind, a reason for each, and where they lie.

    ``nothing_read`` says that it has ended without a row that could be used.
    """

    stream: str
    rows: dict[str, int]
    reasons: dict[str, str] = Field(default_factory=dict)
    folder: str = ""
    nothing_read: bool
    text: str


class LetterAnswer(ApiModel):
    """A row that could not be used: why, where it stood or when it came, and what it said."""

    kind: str
    reason: str
    row: Any
    file: str | None = None
    line: int | None = None
    at: str | None = None


class BalanceRequest(ApiModel):
    """How the system is to be balanced: ``settings`` under the keys of a deployment file."""

    policy: str = Field(max_length=200)
    settings: dict[str, str | float | int | bool | None] = Field({}, max_length=100)


class BalanceAnswer(ApiModel):
    """How the system is balanced, and who said so; ``text`` is that in a line.

    ``settings`` has those that nobody has written as well; null is for no limit. ``submission`` is
    the one whose file says it.
    """

    policy: str
    settings: dict[str, str | float | int | bool | None]
    set_by: BalanceSetter
    submission: str | None
    at_s: float | None
    text: str


class SystemAnswer(ApiModel):
    """All about a system."""

    version: str
    nodes: list[NodeAnswer]
    queries: list[QueryAnswer]
    fragments: list[FragmentAnswer]
    moves: list[MoveAnswer]
    set_aside: list[SetAsideAnswer]
    balance: BalanceAnswer


class VersionAnswer(ApiModel):
    """The version of a controller, whatever else it says."""

    version: str


class SubmittedAnswer(ApiModel):
    """What a submission came to; streams that are ``unread`` run once something reads them.

    ``balance`` is how the system is balanced now, if the file says something about that;
    ``warnings`` are what will go wrong unless something is changed.
    """

    name: str
    fragments: list[str]
    unread: list[str]
    begins: list[BeginAnswer]
    balance: BalanceAnswer | None = None
    sharing: SharingAnswer | None = None
    admission: AdmissionAnswer | None = None
    dry_run: bool = False
    warnings: list[str] = Field(default_factory=list)


class DroppedAnswer(ApiModel):
    """The submission that is no longer there, and the folder of its data if that was kept."""

    name: str
    kept: str | None = None


class RowsAnswer(ApiModel):
    """Rows of a stream, the number to go on with, and whether that was all."""

    next: int
    ended: bool
    rows: list[dict[str, Any]]


class LoginCode(ApiModel):
    """A path that logs a browser in, once and within so many seconds."""

    path: str
    valid_s: float


class KeptAnswer(ApiModel):
    """The oldest batch that is kept."""

    oldest: int


class DoneAnswer(ApiModel):
    """It was done; there is nothing else to say."""
