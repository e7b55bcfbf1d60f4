"""The newest measurements of a system as Prometheus reads them.

Names end in their unit, one of Prometheus's base units; what only grows is a counter. Nothing but
numbers that were measured is there: what is not known of a fragment has no sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.control.answer_models import (
    FragmentAnswer,
    NodeAnswer,
    OperatorAnswer,
    QueryAnswer,
    SetAsideAnswer,
)
from penstock.control.latencies import delay_s


@dataclass(frozen=True)
class Exported:
    """How a measured number is exported: its name there, in Prometheus's units, and what it says.

    One that ``grows`` only ever does, until what is measured is started anew.
    """

    name: str
    told: str
    scale: float = 1.0
    grows: bool = False


_S_PER_MS, _S_PER_US = 1e-3, 1e-6
FRAGMENT_NUMBERS = {
    "backlog_rows": Exported("backlog_rows", "Rows in its inputs that are in no batch yet."),
    "batch_ms": Exported(
        "batch_seconds", "Time of a batch, the median of the last ones.", _S_PER_MS
    ),
    "batches": Exported("batches", "Batches since it was started on its node.", grows=True),
    "busy_ms": Exported(
        "busy_seconds", "Time in batches since it was started on its node.", _S_PER_MS, grows=True
    ),
    "cost_us": Exported("row_cost_seconds", "Processor time for a row in.", _S_PER_US),
    "cpu_ms": Exported(
        "cpu_seconds", "Processor time since it was started on its node.", _S_PER_MS, grows=True
    ),
    "latency_p50_s": Exported(
        "latency_p50_seconds", "Latency of its last batches of results, the median."
    ),
    "latency_p99_s": Exported(
        "latency_p99_seconds", "Latency of its last batches of results, the 99th percentile."
    ),
    "latest_latency_s": Exported(
        "latest_latency_seconds", "Latency of its newest batch of results."
    ),
    "round_ms": Exported(
        "round_seconds", "Time of a round in which a light one is computed with others.", _S_PER_MS
    ),
    "rows_in": Exported("rows_in", "Rows read since it first started, each once.", grows=True),
    "rows_in_before": Exported("rows_in_before", "Rows read by owners before the present one."),
    "rows_in_per_s": Exported("rows_in_per_second", "Rows read in a second."),
    "rows_out": Exported("rows_out", "Rows given since it first started, each once.", grows=True),
    "selectivity": Exported("selectivity_ratio", "Rows out for a row in."),
    "state_bytes": Exported("state_bytes", "Memory that its state takes."),
    "state_rows": Exported("state_rows", "Rows of its state."),
    "waiting_s": Exported(
        "waiting_seconds", "Age of the oldest row that no finished batch has taken up."
    ),
    "watermark_ms": Exported(
        "watermark_timestamp_seconds", "Its watermark: event time since 1970.", _S_PER_MS
    ),
}
"""The numbers of a fragment, by their names among its measurements."""
_OPERATOR_NUMBERS = {
    "cost_us": Exported("row_cost_seconds", "Processor time for a row in, by estimate.", _S_PER_US),
    "rows_in": Exported(
        "rows_in", "Rows in since its fragment was started on its node.", grows=True
    ),
    "rows_in_per_s": Exported("rows_in_per_second", "Rows in, in a second."),
    "rows_out": Exported(
        "rows_out", "Rows out since its fragment was started on its node.", grows=True
    ),
    "rows_out_per_s": Exported("rows_out_per_second", "Rows out, in a second."),
    "selectivity": Exported("selectivity_ratio", "Rows out for a row in."),
}


@dataclass(frozen=True, eq=False)
class SystemMetrics(Collector):
    """The measurements of a system at one time, ``now_s``; ``queries`` of each fragment by name."""

    now_s: float
    nodes: Sequence[NodeAnswer]
    fragments: Sequence[FragmentAnswer]
    operators: Sequence[OperatorAnswer] = ()
    set_aside: Sequence[SetAsideAnswer] = ()
    queries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    submissions: Sequence[QueryAnswer] = ()

    def text(self) -> str:
        """All of it in the text form of Prometheus."""
        # Of its own: whatever else a process registers is not about this system.
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry).decode()

    def collect(self) -> Iterator[Metric]:
        """All families that have a sample."""
        families = (
            *_node_families(self.nodes),
            *_fragment_families(self.fragments),
            *_query_families(self.fragments, self.queries, self.now_s),
            _cpu_shares(self.fragments, self.queries),
            *_operator_families(self.operators),
            *_stream_families(self.set_aside),
            _projections(self.submissions),
        )
        return (family for family in families if family.samples)


def _projections(submissions: Iterable[QueryAnswer]) -> Metric:
    projected = _gauge(
        "penstock_submission_projected_latency_seconds",
        "How old the results of a submission were expected to be when it was taken in.",
        "submission",
    )
    for submission in submissions:
        if submission.projected_s is not None:
            projected.add_metric([submission.name], submission.projected_s)
    return projected


def _node_families(nodes: Iterable[NodeAnswer]) -> tuple[Metric, ...]:
    up = _gauge("penstock_node_up", "Whether a node is up.", "node")
    used = _gauge("penstock_node_utilisation_ratio", "The share of its cores in use.", "node")
    memory = _gauge("penstock_node_memory_bytes", "The memory it uses.", "node")
    for node in nodes:
        up.add_metric([node.name], node.state == "up")
        used.add_metric([node.name], node.utilisation)
        memory.add_metric([node.name], node.memory_bytes)
    return up, used, memory


def _fragment_families(fragments: Sequence[FragmentAnswer]) -> Iterator[Metric]:
    epoch = _of_fragment("epoch", "How often it was given to a node.")
    restarts = _of_fragment("restarts", "How often it was started again since it last ran well.")
    limit = _of_fragment("limit_seconds", "How long its results may take.")
    late = _of_fragment("late", "Whether they take longer.")
    for fragment in fragments:
        labels = _labels(fragment)
        epoch.add_metric(labels, fragment.epoch)
        restarts.add_metric(labels, fragment.restarts)
        if fragment.limit_s is not None:
            limit.add_metric(labels, fragment.limit_s)
            late.add_metric(labels, fragment.late)
    yield from (epoch, restarts, limit, late)
    for measured, exported in FRAGMENT_NUMBERS.items():
        family = _family("fragment", exported, "fragment", "node")
        for fragment in fragments:
            value = getattr(fragment.measured, measured, None)
            if value is not None:
                family.add_metric(_labels(fragment), value * exported.scale)
        yield family


def _query_families(
    fragments: Iterable[FragmentAnswer], queries: Mapping[str, Sequence[str]], now_s: float
) -> tuple[Metric, ...]:
    gap = _gauge(
        "penstock_query_watermark_gap_seconds",
        "How far its watermark is behind the clock.",
        "query",
    )
    share = _gauge(
        "penstock_query_latency_ratio", "How long its results take, over what they may.", "query"
    )
    for fragment in fragments:
        status = fragment.status
        if status is None:
            continue
        delayed_s = delay_s(status)
        for query in queries.get(fragment.name, ()):
            if status.watermark_ms is not None and not status.is_finished:
                gap.add_metric([query], now_s - status.watermark_ms / 1_000)
            if fragment.limit_s and delayed_s is not None:
                share.add_metric([query], delayed_s / fragment.limit_s)
    return gap, share


def _cpu_shares(
    fragments: Iterable[FragmentAnswer], queries: Mapping[str, Sequence[str]]
) -> Metric:
    """What each query is of all the work; the queries of one fragment are charged alike."""
    family = _gauge(
        "penstock_query_cpu_share_ratio",
        "Its part of the processor time of all fragments since each was started on its node.",
        "query",
    )
    spent_ms = {
        fragment.name: fragment.status.cpu_ms
        for fragment in fragments
        if fragment.status is not None
    }
    total_ms = sum(spent_ms.values())
    shares: dict[str, float] = {}
    for name, ms in spent_ms.items() if total_ms else ():
        mine = queries.get(name, ())
        for query in mine:
            shares[query] = shares.get(query, 0.0) + ms / total_ms / len(mine)
    for query, share in shares.items():
        family.add_metric([query], share)
    return family


def _operator_families(operators: Sequence[OperatorAnswer]) -> Iterator[Metric]:
    for measured, exported in _OPERATOR_NUMBERS.items():
        family = _family("operator", exported, "operator", "fragment")
        for operator in operators:
            value = getattr(operator, measured)
            if value is not None:
                family.add_metric([operator.operator, operator.fragment], value * exported.scale)
        yield family


def _stream_families(set_aside: Iterable[SetAsideAnswer]) -> tuple[Metric, ...]:
    told = "Rows of a stream that could not be used, by the kind of reason."
    rows = _family("stream", Exported("set_aside_rows", told, grows=True), "stream", "kind")
    nothing = _gauge(
        "penstock_stream_nothing_read", "Whether it has ended and nothing could be used.", "stream"
    )
    for aside in set_aside:
        for kind, count in aside.rows.items():
            rows.add_metric([aside.stream, kind], count)
        nothing.add_metric([aside.stream], aside.nothing_read)
    return rows, nothing


def _family(
    subject: str, exported: Exported, *labels: str
) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if exported.grows else GaugeMetricFamily
    return kind(f"penstock_{subject}_{exported.name}", exported.told, labels=labels)


def _gauge(name: str, told: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, told, labels=labels)


def _of_fragment(name: str, told: str) -> GaugeMetricFamily:
    return _gauge(f"penstock_fragment_{name}", told, "fragment", "node")


def _labels(fragment: FragmentAnswer) -> list[str]:
    return [fragment.name, fragment.node or ""]
