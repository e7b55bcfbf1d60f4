"""What the REST API answers about sharing and admission: what is shared, and whether it fits."""

from __future__ import annotations

from penstock.control.api_model import ApiModel


class SharedAnswer(ApiModel):
    """A stream that a query reads of others: whose it is, and who else uses it.

    One that is ``tapped`` lies inside the fragment that computes it; one that ``is_sliced`` are the
    slices of its windows, of which others are put together. ``rest`` is what is still checked of
    its rows, if anything.
    """

    stream: str
    source: str
    fragment: str
    submission: str
    used_by: list[str]
    tapped: bool
    signature: str
    is_sliced: bool = False
    rest: str | None = None


class SharingAnswer(ApiModel):
    """What a submission shares: streams of others, and which of its operators that saves.

    ``notes`` say what runs already and is not shared all the same.
    """

    shared: list[SharedAnswer]
    operators: int
    saved: list[str]
    notes: list[str]


class GraphPartAnswer(ApiModel):
    """A fragment or an intake behind a query: whose it is, where it runs, what it does and reads.

    ``taps`` are streams inside it that others share, ``shared`` those that it reads instead of
    computing them.
    """

    fragment: str
    submission: str
    node: str | None
    operators: list[str]
    reads: list[str]
    shared: list[str]
    taps: list[str]


class GraphAnswer(ApiModel):
    """What a submission computes itself, what it reads of whom, and what was projected of it.

    ``measured_s`` is how old its results have been at most, by the 99th percentile.
    """

    name: str
    own: list[GraphPartAnswer]
    others: list[GraphPartAnswer]
    sharing: SharingAnswer
    projected_s: float | None
    measured_s: float | None
    limit_s: float | None


class TouchedAnswer(ApiModel):
    """A query on a node that gets more to do: its latency as measured and as projected."""

    query: str
    before_s: float
    after_s: float | None
    limit_s: float | None


class AdmissionAnswer(ApiModel):
    """What a submission was projected to come to when it was decided.

    ``places`` are the nodes of its fragments, ``loads`` the shares of nodes in use afterwards on
    average and ``peaks`` in bursts, ``why`` why it does not fit, ``help`` what would let it. Times
    that have no end or are not known are null.
    """

    fits: bool
    projected_s: float | None
    limit_s: float | None
    places: dict[str, str]
    others: list[TouchedAnswer]
    loads: dict[str, float]
    peaks: dict[str, float]
    why: list[str]
    help: list[str]
