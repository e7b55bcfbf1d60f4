"""The paper that figures of commands are drawn on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def canvas_for(path: Path, size: tuple[float, float], font_size: int) -> Iterator[Figure]:
    """A canvas to draw on, written to ``path`` at the end of the block.

    The format is that of the path's suffix; the same drawing gives the same bytes. Raises
    InputError if the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "penstock", "svg.fonttype": "none", "font.size": font_size}):
        canvas = Figure(figsize=size, layout="constrained")
        yield canvas
        try:
            canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        except (OSError, ValueError) as error:
            raise InputError(
                f"the figure {path} cannot be written: {error}",
                hint="Name a file that ends in .svg, .png or .pdf.",
            ) from None
