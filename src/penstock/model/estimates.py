"""What an operator is expected to cost."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InputError


@dataclass(frozen=True)
class OperatorEstimate:
    """The expected cost of one operator, each number None where it is not known.

    ``cost_us`` is processor time per input row, ``rate_per_s`` the input rows in a second,
    ``selectivity`` the output rows per input row, ``load`` the share of one core. Where a cost was
    measured of whole batches, ``rows_per_batch`` says how many rows shared what a batch costs.

    >>> OperatorEstimate(cost_us=2.0, rate_per_s=1_000.0).load is None
    True
    """

    cost_us: float | None = None
    rate_per_s: float | None = None
    selectivity: float | None = None
    load: float | None = None
    rows_per_batch: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value >= 0:
                raise InputError(f"an estimate with {name} {value}", hint="Give zero or more.")
