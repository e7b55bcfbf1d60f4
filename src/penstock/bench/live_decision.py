"""How long a controller takes to decide on a query, with a catalog of many that run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.bench.density_load import STREAM
from penstock.control.answer_models import SubmitRequest
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.model.measurements import FragmentStatus, NodeSample

_NODES = 4
_SAMPLES = 30
_A_FILE = 50
_STEPS = 3
"""Windows in a row: with the filters and maps between them ten operators."""


def query(number: int) -> str:
    """A window over a filtered stream, and a condition on its results.

    >>> query(3)
    "SELECT k, window.end AS at, sum(x) AS x, count(*) AS n FROM readings WHERE v >= 3 \
GROUP BY k, window(ts, '10 seconds') HAVING sum(x) > 4"
    """
    return (
        f"SELECT k, window.end AS at, sum(x) AS x, count(*) AS n FROM readings WHERE v >= {number} "
        "GROUP BY k, window(ts, '10 seconds') HAVING sum(x) > 4"
    )


def long_query(number: int) -> str:
    """A query of ten operators: three windows in a row, of which the first runs already."""
    steps = [f"w0 AS ({query(number)})"]
    for step in range(1, _STEPS):
        steps.append(
            f"w{step} AS (SELECT k, window.end AS at, sum(x) AS x, count(*) AS n FROM w{step - 1} "
            f"GROUP BY k, window(at, '{10 * (step + 1)} seconds'))"
        )
    return f"WITH {', '.join(steps)} SELECT k, at, x + n AS y FROM w{_STEPS - 1} WHERE x > 1"


def decisions_ms(queries: int, decisions: int) -> list[float]:
    """Milliseconds of decisions on queries of ten operators, against so many that run; sorted."""
    with _running(queries) as controller:
        taken = []
        # The first one reads the plans of all that runs; the controller keeps them.
        for number in range(decisions + 1):
            asked = SubmitRequest(
                name=f"asked{number}", kind="sql", text=long_query(number), folder=".",
                max_latency_us=10_000_000, dry_run=True,
            )  # fmt: skip
            began_s = time.perf_counter()
            _, proposal = controller.take_in(asked)
            taken.append(1e3 * (time.perf_counter() - began_s))
            assert proposal.asked.sharing.reads, "what runs already is shared"
    return sorted(taken[1:])


@contextmanager
def _running(queries: int) -> Iterator[Controller]:
    """A controller of nodes that are said to run so many queries; nobody does."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        home = Home(Path(folder) / "system")
        home.prepare()
        catalog = Catalog(home.catalog_url)
        try:
            catalog.prepare()
            for number in range(_NODES):
                life = f"n{number}-1"
                lease_s = time.time() + 3_600
                catalog.join(NodeRecord(f"n{number}", 2, 1 << 30, life, lease_until_s=lease_s))
            controller = Controller(home, catalog)
            controller.submit("input", "yaml", STREAM, ".", share=False)
            for first in range(0, queries, _A_FILE):
                lines = (
                    f'  q{number}: {{sql: "{query(number)}", max_latency: 10s}}\n'
                    for number in range(first, min(queries, first + _A_FILE))
                )
                text = "queries:\n" + "".join(lines)
                controller.submit(f"file{first}", "yaml", text, ".", share=False)
            _pretend(catalog)
            yield controller
        finally:
            catalog.close()


def _pretend(catalog: Catalog) -> None:
    """Says that all units run, and what was measured of them."""
    statuses: dict[str, dict[str, FragmentStatus]] = {f"n{at}": {} for at in range(_NODES)}
    for number, unit in enumerate(catalog.units()):
        node = f"n{number % _NODES}"
        catalog.assign(unit, node)
        catalog.report(unit.name, unit.epoch + 1, "running")
        if unit.kind == "fragment":
            statuses[node][unit.name] = FragmentStatus(
                unit.name, rows_in=100_000, rows_out=1_000, rows_in_per_s=100.0, batches=100,
                batch_ms=2.0, selectivity=0.01, cost_us=2.0, latency_p50_s=2.8, latency_p99_s=3.0,
            )  # fmt: skip
    for node, fragments in statuses.items():
        for at in range(_SAMPLES):
            catalog.sample(node, NodeSample(time.time() + at / 10, 0.5, 0.25, fragments=fragments))
