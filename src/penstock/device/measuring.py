"""What a chain costs, measured over rows of the real stream with the engine of a device.

Every operator runs over a sample, step by step. An operator that only the server can run ends the
sample: what is behind it has to be given in the file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import psutil
import pyarrow as pa
import pyarrow.compute as pc

from penstock.device.chain import Chain, chain_of
from penstock.device.engine import ShippedRun
from penstock.device.problem import ChainMeasure, given_problem, problem_of
from penstock.device.steps import DeviceStep
from penstock.errors import InputError
from penstock.feeds.generators import generator
from penstock.feeds.rates import known_rates
from penstock.feeds.table_rows import table_rows
from penstock.model.devices import DeviceQuery, GivenCost
from penstock.model.durations import US_PER_S
from penstock.model.network import Deployment
from penstock.model.operators import Aggregate, Operator, TableJoin
from penstock.model.sources import GeneratorSource, Stream
from penstock.model.windows import Window
from penstock.power.problem import PowerProblem

SAMPLE_ROWS = 20_000
_USUAL_HZ = 1.0e9
_NO_END_US = 2**60


def sample_of(stream: Stream, rows: int = SAMPLE_ROWS) -> pa.Table:
    """The first rows of a generated stream; raises where a stream cannot be looked into."""
    if not isinstance(stream.source, GeneratorSource):
        raise InputError(
            f"stream {stream.name} cannot be sampled before it runs",
            hint="Give rate, tuple_bytes and the costs of operators under device: of the query.",
        )
    feed = generator(stream.source.generator, stream.source.options)
    return feed.read(0, rows if feed.size is None else min(rows, feed.size))


def clock_hz() -> float:
    """How many cycles this machine does in a second, as far as it tells."""
    found = psutil.cpu_freq()
    return found.current * 1e6 if found and found.current else _USUAL_HZ


def measure_chain(
    chain: Chain, rows: pa.Table, tables: Mapping[str, pa.Table], speed_hz: float
) -> ChainMeasure:
    """Rate, sizes, selectivities and cycles of a chain, over rows of the stream it begins with."""
    seconds = _span_s(rows, chain.source_shape.event_time)
    rate, size = rows.num_rows / seconds, _tuple_bytes(rows)
    costs: list[GivenCost] = []
    for at, (operator, step) in enumerate(zip(chain.operators, chain.steps, strict=True)):
        if isinstance(step, InputError) or not rows.num_rows:
            costs += [GivenCost()] * (len(chain.operators) - at)
            break
        run = ShippedRun([step], chain.shape_at(at).schema, tables)
        run.feed(rows.slice(0, 1), None)
        began_s = time.process_time()
        given = run.feed(rows, _NO_END_US)
        spent_s = time.process_time() - began_s
        selectivity = _selectivity(operator, step, rows, given, seconds)
        costs.append(
            GivenCost(
                cycles=spent_s * speed_hz / rows.num_rows,
                selectivity=selectivity,
                projectivity=_tuple_bytes(given) / max(_tuple_bytes(rows), 1e-9),
            )
        )
        seconds_of_rows = given.num_rows / max(selectivity * rows.num_rows / seconds, 1e-9)
        rows, seconds = given, max(seconds_of_rows, 1e-9)
    return ChainMeasure(rate, size, tuple(costs))


def measured_problem(deployment: Deployment, own: Mapping[str, pa.Table]) -> PowerProblem:
    """The planning problem of a deployment: what its file gives, and the rest from a sample.

    ``own`` are tables as a device may have them.
    """
    problem, is_known = given_problem(deployment)
    section = deployment.devices
    assert section is not None
    if is_known:
        return problem
    speed_hz, found, chains = clock_hz(), {}, {}
    rates = known_rates(deployment.network)
    for query in section.queries:
        chain = chains[query.name] = chain_of(deployment.network, query.name)
        rows = sample_of(deployment.network.stream(chain.source))
        measured = measure_chain(chain, rows, tables_for(chain, own), speed_hz)
        # A cycle lasts real time, and a stream may be played faster than it happened.
        rate_per_s = rates.get(chain.source, measured.rate_per_s)
        found[query.name] = replace(measured, rate_per_s=rate_per_s)
        _check_measured(chain, query, found[query.name])
    return problem_of(section, chains, found)


def _check_measured(chain: Chain, query: DeviceQuery, found: ChainMeasure) -> None:
    for operator, step, cost in zip(chain.operators, chain.steps, found.costs, strict=True):
        given = query.costs.get(operator.name, GivenCost())
        is_known = None not in (given.selectivity or cost.selectivity, given.cycles or cost.cycles)
        if isinstance(step, InputError) and not is_known:
            raise InputError(
                f"{operator.name} of query {query.name} cannot be measured here: {step.what}",
                hint=f"Give cycles and selectivity of {operator.name}, and of what is behind it, "
                "under device: operators: of the query.",
            )


def _selectivity(
    operator: Operator, step: DeviceStep, rows: pa.Table, given: pa.Table, seconds: float
) -> float:
    """Output over input tuples; of sliding windows as they will be once they are full."""
    if not isinstance(operator, Aggregate) or not isinstance(operator.window, Window):
        return float(given.num_rows / rows.num_rows)
    ends = len(pc.unique(given.column("window_end"))) if given.num_rows else 1
    groups = given.num_rows / max(ends, 1)
    per_s = groups / (operator.window.slide_us / US_PER_S)
    return float(per_s / (rows.num_rows / seconds))


def _span_s(rows: pa.Table, event_time: str | None) -> float:
    if event_time is None or rows.num_rows < 2:
        return 1.0
    ends = pc.min_max(rows.column(event_time).cast(pa.int64())).as_py()
    return max(float(ends["max"] - ends["min"]) / US_PER_S, 1e-6)


def _tuple_bytes(rows: pa.Table) -> float:
    return float(rows.nbytes / rows.num_rows) if rows.num_rows else 0.0


def tables_for(chain: Chain, own: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables that a chain joins: the server's from their files, those of devices as given."""
    found = dict(own)
    for operator in chain.operators:
        if isinstance(operator, TableJoin) and operator.table.path is not None:
            found[operator.table.name] = table_rows(operator.table)
    return found
