"""What each operator of a running fragment does and costs, from what was measured of the whole.

Spark runs the operators of a fragment as one compiled piece, so only the whole can be measured.
Rows inside follow from rows in and rows out wherever a single operator decides how many there are;
where several do, those between them stay unknown. The processor time of the fragment is shared out
by what a row costs each kind of operator (``penstock bench costs``); reading has its share too. An
operator of a kind too cheap to have been measured gets no share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.load.costs import READING, CostTable
from penstock.model.fragments import Fragment
from penstock.model.operators import Aggregate, Map, Operator, Union


@dataclass(frozen=True)
class OperatorShare:
    """One operator of a fragment since it was started on its node; None where it is not known.

    ``cost_us`` is estimated processor time for a row in.
    """

    name: str
    kind: str
    rows_in: float | None
    rows_out: float | None
    cost_us: float | None

    @property
    def selectivity(self) -> float | None:
        """Rows out for a row in."""
        if self.rows_in is None or self.rows_out is None or self.rows_in == 0:
            return None
        return self.rows_out / self.rows_in


def operator_shares(
    fragment: Fragment, rows_in: float, rows_out: float, cpu_ms: float, costs: CostTable
) -> tuple[OperatorShare, ...]:
    """The operators of a fragment that read and gave so many rows in so much processor time."""
    rows = _rows(fragment, rows_in, rows_out)
    read = {
        operator.name: _read(operator, fragment, rows, rows_in) for operator in fragment.operators
    }
    work_us = {
        operator.name: _row_us(operator, costs) * (read[operator.name] or 0)
        for operator in fragment.operators
    }
    whole_us = rows_in * (costs.of(READING) or 0.0) + sum(work_us.values())
    # Microseconds of the processor for every one that the table knows of.
    ratio = 1_000 * cpu_ms / whole_us if whole_us else 0.0
    return tuple(
        OperatorShare(
            operator.name,
            operator.kind,
            read[operator.name],
            rows.get(operator.name),
            ratio * _row_us(operator, costs) if ratio and work_us[operator.name] else None,
        )
        for operator in fragment.operators
    )


def _rows(fragment: Fragment, rows_in: float, rows_out: float) -> Mapping[str, float]:
    """The rows of every stream in the fragment that follow from those in and out."""
    known: dict[str, float] = {}
    if len(fragment.inputs) == 1:
        known[fragment.inputs[0]] = rows_in
    for operator in fragment.operators:
        read = _read(operator, fragment, known, rows_in)
        if isinstance(operator, Map | Union) and read is not None:
            known[operator.name] = read
    known[fragment.output] = rows_out
    for operator in reversed(fragment.operators):
        if isinstance(operator, Map) and operator.name in known:
            known.setdefault(operator.input.stream, known[operator.name])
    return known


def _read(
    operator: Operator, fragment: Fragment, rows: Mapping[str, float], rows_in: float
) -> float | None:
    streams = [input.stream for input in operator.inputs]
    if sorted(_origin(fragment, stream) for stream in streams) == sorted(fragment.inputs):
        return rows_in
    known = [rows[stream] for stream in streams if stream in rows]
    return sum(known) if len(known) == len(streams) else None


def _origin(fragment: Fragment, stream: str) -> str:
    """The stream that has the same rows as this one, as far up as that goes."""
    for operator in reversed(fragment.operators):
        if operator.name == stream and isinstance(operator, Map):
            stream = operator.input.stream
    return stream


def _row_us(operator: Operator, costs: CostTable) -> float:
    """What a row costs an operator by the table; 0 where its kind was too cheap to measure."""
    copies = operator.window.copies_per_row if isinstance(operator, Aggregate) else 1.0
    return (costs.of(operator.kind) or 0.0) * copies
