"""Which engine runs a fragment, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.kernels.gather_plan import GatherPlan
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.merged import Merged
from penstock.kernels.planning import LightPlan, plan_fragment
from penstock.kernels.rows_plan import RowsPlan
from penstock.kernels.window_plan import NotLight
from penstock.model.engines import EngineName
from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.model.operators import WindowJoin
from penstock.model.slices import FromSlices
from penstock.model.windows import SessionWindow


@dataclass(frozen=True)
class EngineChoice:
    """An engine and the reason for it; ``plan`` is how kernels run the fragment, if they do."""

    engine: EngineName
    reason: str
    plan: LightPlan | None = None


def choose_engine(
    network: Network, fragment: Fragment, default: EngineName | None = None
) -> EngineChoice:
    """The engine that the queries behind a fragment ask for; light if they do not and it can be.

    Refused if one asks for light and kernels cannot run the fragment that gives its result.
    ``default`` is what those get who do not ask.
    """
    if not fragment.is_whole:
        return _choose_for_part(fragment)
    behind = network.queries_behind[fragment.output]
    asked = {query.name: query.engine for query in behind if query.engine}
    native = [name for name, engine in asked.items() if engine == "native"]
    if native:
        return EngineChoice("native", f"{native[0]} asks for it")
    is_join = any(isinstance(operator, WindowJoin) for operator in fragment.operators)
    joining = [query for query in behind if query.join == "native"]
    if is_join and joining:
        return EngineChoice("native", f"{joining[0].name} asks for Spark's own join")
    planned = plan_fragment(fragment)
    if isinstance(planned, NotLight):
        for query in network.queries:
            if query.engine == "light" and query.name in fragment.queries:
                raise InputError(
                    f"query {query.name} asks for the light engine, which cannot run it: "
                    f"{planned.reason}",
                    hint="Leave engine out, or say engine: native.",
                )
            if is_join and query.join == "partitioned" and query.name in fragment.queries:
                raise InputError(
                    f"query {query.name} asks for a partitioned join, which cannot be: "
                    f"{planned.reason}",
                    hint="Leave join out, or say join: native.",
                )
        return EngineChoice("native", planned.reason)
    if default == "native" and "light" not in asked.values() and not _reads_slices(fragment):
        return EngineChoice("native", "this node runs all queries so")
    return EngineChoice("light", _what(planned), planned)


def _choose_for_part(fragment: Fragment) -> EngineChoice:
    """Only kernels know parts; whether they can run them was looked at when they were planned."""
    planned = plan_fragment(fragment)
    if isinstance(planned, NotLight):
        raise InputError(
            f"{fragment.name} cannot be a part of a join: {planned.reason}",
            hint="Leave spread out of its query's join.",
        )
    return EngineChoice("light", _what(planned), planned)


def _reads_slices(fragment: Fragment) -> bool:
    """Whether it puts windows together from slices, which only kernels can."""
    return any(isinstance(operator, FromSlices) for operator in fragment.operators)


def _what(plan: LightPlan) -> str:
    if isinstance(plan, JoinPlan):
        return "a join of two streams" if plan.part is None else "a part of a join of two streams"
    if isinstance(plan, GatherPlan):
        return "the results of a join's parts"
    if isinstance(plan, RowsPlan):
        return "rows of a stream that is shared"
    if any(isinstance(call.kind, Merged) for call in plan.calls):
        return "windows put together from slices that are shared"
    what = "sessions" if isinstance(plan.window, SessionWindow) else "windows"
    return f"{what} over one stream"


def light_fragments(network: Network, fragments: Iterable[Fragment]) -> frozenset[str]:
    """The names of the fragments that are run light unless their node says otherwise."""
    return frozenset(
        fragment.name for fragment in fragments if choose_engine(network, fragment).plan is not None
    )
