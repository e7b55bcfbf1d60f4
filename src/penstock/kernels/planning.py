"""How kernels run a fragment, whatever it is."""

from __future__ import annotations

from typing import TypeAlias

from penstock.kernels.gather_plan import GatherPlan, plan_gathering
from penstock.kernels.join_plan import JoinPlan, plan_join
from penstock.kernels.rows_plan import RowsPlan, plan_rows
from penstock.kernels.window_plan import NotLight, WindowPlan, plan_windows
from penstock.model.fragments import Fragment
from penstock.model.operators import WindowJoin

LightPlan: TypeAlias = WindowPlan | JoinPlan | GatherPlan | RowsPlan


def plan_fragment(fragment: Fragment) -> LightPlan | NotLight:
    """The plan of a fragment, or why kernels cannot run it."""
    if fragment.gathers is not None:
        return plan_gathering(fragment)
    if any(isinstance(operator, WindowJoin) for operator in fragment.operators):
        return plan_join(fragment)
    if fragment.inputs == fragment.shared and not fragment.stateful:
        return plan_rows(fragment)
    return plan_windows(fragment)
