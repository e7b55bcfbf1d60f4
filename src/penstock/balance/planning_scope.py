"""How much of a large system a policy looks at together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InputError


@dataclass(frozen=True)
class PlanningScope:
    """What keeps planning short where there is much to plan.

    ``domain``: so many nodes at most are balanced together, others with others; 0 for all of them.
    ``lightest``: operators that weigh less are put together until they do; 0 for none.
    """

    domain: int = 0
    lightest: float = 0.0

    def __post_init__(self) -> None:
        if self.domain < 0 or not self.lightest >= 0.0:
            raise InputError(
                f"domains of {self.domain} nodes and groups of {self.lightest:g}",
                hint="Give numbers of zero or more.",
            )
