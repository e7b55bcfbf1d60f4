"""What readers plan with: offsets, and the slices of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Offset = dict[str, object]
"""A JSON object; ``watermark_us`` and ``ended`` in it are what is known about the stream there.

So whoever reads Spark's offset log knows it too.
"""


@dataclass(frozen=True)
class Slice:
    """A part of a batch that one task reads; ``watermark_us`` is sent along after its rows."""

    body: Mapping[str, object] = field(default_factory=dict)
    watermark_us: int | None = None
