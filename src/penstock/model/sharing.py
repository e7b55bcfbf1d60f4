"""What a submission reads of others instead of computing it: decided once, recorded with it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.expressions import Expression
from penstock.model.operators import Filter, Operator
from penstock.model.schema import Shape
from penstock.model.slices import FromSlices


@dataclass(frozen=True)
class SharedStream:
    """A stream of a submission that is made of one that runs, instead of from its beginnings.

    ``source`` is the channel to read, filled by the fragment ``maker``, and ``signature`` what that
    holds; ``operators`` make ``stream`` of it, the last one under its name. A source that is
    ``tapped`` lies inside the maker, which gives it to a channel for those who share it.
    """

    stream: str
    source: str
    signature: str
    maker: str
    operators: tuple[Operator, ...]
    tapped: bool = False

    @property
    def shape(self) -> Shape:
        """The shape of the source."""
        return self.operators[0].inputs[0].shape

    @property
    def rest(self) -> Expression | None:
        """What has still to be checked of the rows of the source, if anything."""
        found = (step.predicate for step in self.operators if isinstance(step, Filter))
        return next(found, None)

    @property
    def is_sliced(self) -> bool:
        """Whether the source are slices of which windows are put together."""
        return isinstance(self.operators[-1], FromSlices)


@dataclass(frozen=True)
class Sharing:
    """What a submission shares, and in words what it could have shared and does not.

    ``saved`` are its operators that others compute for it, ``projected_s`` the time to its results
    as it was projected when it was taken in.
    """

    reads: tuple[SharedStream, ...] = ()
    saved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    projected_s: float | None = None


NOTHING_SHARED = Sharing()
