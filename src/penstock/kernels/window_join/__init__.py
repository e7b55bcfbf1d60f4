"""A sliding-window join of two streams: every batch from runs of rows sorted by key and time."""

from penstock.kernels.window_join.batch import Horizon, advance, join_batch, retire
from penstock.kernels.window_join.run_cache import RunCache
from penstock.kernels.window_join.terms import JoinOffset, JoinSide, JoinTerms, SideOffset
from penstock.kernels.window_join.window import SideBatches

__all__ = [
    "Horizon",
    "JoinOffset",
    "JoinSide",
    "JoinTerms",
    "RunCache",
    "SideBatches",
    "SideOffset",
    "advance",
    "join_batch",
    "retire",
]
