"""Projected against measured time of a stream's tuples on a shared node (figures 14, 16-24).

A node serves first come, first served. One stream runs there already; a component is shared by one
more, which bursts alike and is known by its maximum. The source gives neither streams nor service
times, so three peak loads are tried, with equal service times and with the new component's five
times as long. Segments are those of the pattern, or as the detector finds them in the arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.share.load_signatures import SegmentDetector, segments_of
from penstock.share.projection import Serving, segment_times_s
from penstock.sim.fcfs_queue import times_in_queue_s
from penstock.studies.figures import Figure
from penstock.studies.recording import Stretch
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    gathered,
    within,
)
from penstock.studies.running import one_by_one
from penstock.studies.seeds import rng_of

Floats = NDArray[np.float64]
PEAKS = (0.5, 0.8, 0.95)
_RATIOS = (1.0, 5.0)
_OWN_SHARE = 2 / 3
"""How much of the peak load is the stream's own; the rest is the component that is shared."""
_BATCHES = 20
_TICKS = 10_000
"""How long the detector looks."""


@dataclass(frozen=True)
class Pattern:
    """Rates by turns, each for half a period; a recording where ``log`` is given."""

    name: str
    high_per_s: float
    low_per_s: float
    period_s: float
    log: str = ""


PATTERNS = (
    Pattern("Poisson 20/s", 20, 20, 2.5),
    Pattern("30/10, 2.5 s", 30, 10, 2.5),
    Pattern("30/10, 0.5 s", 30, 10, 0.5),
    Pattern("30/10, 5 s", 30, 10, 5.0),
    Pattern("3/1, 2.5 s", 3, 1, 2.5),
    Pattern("300/100, 2.5 s", 300, 100, 2.5),
    Pattern("20/10, 2.5 s", 20, 10, 2.5),
    Pattern("40/10, 2.5 s", 40, 10, 2.5),
    Pattern("recorded, dns", 200, 0, 2.0, "dns"),
)


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Every pattern at every peak load, with equal and unequal service times."""
    tuples = 4_000 if quick else 60_000
    points = [
        (number, peak, ratio, tuples)
        for number in range(len(PATTERNS))
        for peak in PEAKS
        for ratio in _RATIOS
    ]
    table = gathered("projection", run(measure, points, say))
    shown = _shown(table)
    figures = tuple(
        Figure(
            f"projection-{name}", f"projection-{name}", "peak_load", "time_of_tau", by="curve",
            log_y=True, title=f"{PATTERNS[at].name}, unequal service times, high segments",
            x_label="load of the node in high segments", y_label="time / service time",
        )
        for name, at in _DRAWN.items()
    )  # fmt: skip
    setup = (
        f"One first-come-first-served server, exponential service times, about {tuples:,} tuples a "
        "run. Peak load: of high segments, two thirds of it the stream's own. Unequal: the added "
        "component's service time is five times the stream's. Noise: three standard errors of "
        "the mean over twenty batches."
    )
    return StudyReport("projection", tuple(_rows(table)), (table, *shown), figures, setup)


_DRAWN = {"poisson": 0, "bursts": 1, "recorded": 8}


def measure(point: tuple[int, float, float, int]) -> list[dict[str, Value]]:
    """One pattern at one load: a record for its high segments and one for its low ones."""
    number, peak, ratio, tuples = point
    pattern = PATTERNS[number]
    rng = rng_of("projection", number, round(1000 * peak), round(ratio))
    rates, half_s = _rates(pattern, tuples)
    high_per_s = rates.max()
    tau_s = peak * _OWN_SHARE / high_per_s
    added, added_tau_s = peak * (1 - _OWN_SHARE), tau_s * ratio
    arrivals_s = _arrivals(rng, rates, half_s)
    others_s = _arrivals(rng, rates / high_per_s * added / added_tau_s, half_s)
    times_s = _served(rng, arrivals_s, tau_s, others_s, added_tau_s)
    segment = np.minimum((arrivals_s / half_s).astype(int), len(rates) - 1)
    loads = rates * tau_s
    curves = {
        "as the source": segment_times_s(tau_s, loads, added),
        "corrected": _corrected(loads, tau_s, added, added_tau_s, half_s),
        "as found": _as_found(arrivals_s, len(rates), half_s, tau_s, added, added_tau_s),
    }
    found = []
    middle = (rates.max() + rates.min()) / 2
    for which, is_kind in (("high", rates >= middle), ("low", rates < middle)):
        tuples_of = is_kind[segment]
        if not tuples_of.any():
            continue
        mean_s, noise_s = _mean_and_noise(times_s[tuples_of])
        weights = np.bincount(segment, minlength=len(rates))[is_kind]
        record: dict[str, Value] = {
            "pattern": pattern.name,
            "peak_load": peak,
            "tau_ratio": ratio,
            "segments": which,
            "measured_s": mean_s,
            "noise_s": noise_s,
            "isolated_s": tau_s,
        }
        for name, curve in curves.items():
            seen = is_kind[: len(curve)]
            counted = weights[: seen.sum()] > 0
            own = np.repeat(curve[seen][counted], weights[: seen.sum()][counted])
            record[name] = float(own.mean())
        found.append(record)
    return found


def _rates(pattern: Pattern, tuples: int) -> tuple[Floats, float]:
    """The rate in every half period, for about so many tuples."""
    if pattern.log:
        counts = Stretch(pattern.log, 0).rates_per_s(1_200, pattern.high_per_s / 4)
        smooth = np.convolve(counts, np.ones(5) / 5, mode="valid")[::5]
        return np.asarray(smooth, dtype=float), 5.0
    half_s = pattern.period_s / 2
    mean_per_s = (pattern.high_per_s + pattern.low_per_s) / 2
    pairs = max(50, round(tuples / mean_per_s / pattern.period_s))
    return np.tile([pattern.high_per_s, pattern.low_per_s], pairs), half_s


def _arrivals(rng: np.random.Generator, rates: Floats, half_s: float) -> Floats:
    counts = rng.poisson(rates * half_s)
    starts = np.repeat(np.arange(len(rates)) * half_s, counts)
    return np.sort(starts + rng.random(counts.sum()) * half_s)


def _served(
    rng: np.random.Generator,
    arrivals_s: Floats,
    tau_s: float,
    others_s: Floats,
    added_tau_s: float,
) -> Floats:
    """The times of the stream's own tuples on the node that serves the other's as well."""
    services_s = np.concatenate(
        (
            rng.exponential(tau_s, len(arrivals_s)),
            rng.exponential(added_tau_s, len(others_s)),
        )
    )
    both_s = np.concatenate((arrivals_s, others_s))
    order = np.argsort(both_s, kind="stable")
    times_s = np.empty_like(both_s)
    times_s[order] = times_in_queue_s(both_s[order], services_s[order])
    return times_s[: len(arrivals_s)]


def _corrected(
    loads: Floats, tau_s: float, added: float, added_tau_s: float, segment_s: float
) -> Floats:
    work_s = loads * tau_s + added * added_tau_s
    return segment_times_s(tau_s, loads, added, Serving.FCFS, work_s, segment_s)


def _as_found(
    arrivals_s: Floats, segments: int, half_s: float, tau_s: float, added: float, added_tau_s: float
) -> Floats:
    """The corrected projection from detected segments, read off at the first of the true ones."""
    tick_s = min(half_s / 5, 0.05)
    segments = min(segments, max(2, int(_TICKS * tick_s / half_s)))
    found = segments_of(arrivals_s, segments * half_s, SegmentDetector(tick_s=tick_s))
    lengths_s = np.array([length_s for length_s, _ in found])
    loads = np.array([rate for _, rate in found]) * tau_s
    curve = _corrected(loads, tau_s, added, added_tau_s, float(lengths_s.min()))
    middles_s = (np.arange(segments) + 0.5) * half_s
    at = np.searchsorted(np.cumsum(lengths_s), middles_s)
    return curve[np.minimum(at, len(curve) - 1)]


def _mean_and_noise(times_s: Floats) -> tuple[float, float]:
    batches = [part.mean() for part in np.array_split(times_s, _BATCHES)]
    return float(times_s.mean()), float(3 * np.std(batches, ddof=1) / np.sqrt(_BATCHES))


def _shown(table: ResultTable) -> list[ResultTable]:
    curves = ("measured_s", "as the source", "corrected", "as found", "isolated_s")
    tables = []
    for name, at in _DRAWN.items():
        rows = table.where(pattern=PATTERNS[at].name, segments="high", tau_ratio=_RATIOS[1])
        pairs = [
            (peak, curve.removesuffix("_s"), float(str(time)) / float(str(alone)))
            for curve in curves
            for peak, time, alone in zip(
                rows.column("peak_load"), rows.column(curve), rows.column("isolated_s"), strict=True
            )
        ]
        tables.append(
            ResultTable(f"projection-{name}", ("peak_load", "curve", "time_of_tau"), tuple(pairs))
        )
    return tables


def _worst(table: ResultTable, curve: str, segments: str) -> float:
    """The lowest projection over measurement, noise allowed for."""
    rows = table.where(segments=segments)
    projected, time_s, noise_s = (
        np.array(rows.column(name), dtype=float) for name in (curve, "measured_s", "noise_s")
    )
    return float((projected / np.maximum(time_s - noise_s, 1e-12)).min())


def _typical(table: ResultTable, curve: str, segments: str) -> float:
    rows = table.where(segments=segments)
    projected, time_s = (np.array(rows.column(n), dtype=float) for n in (curve, "measured_s"))
    return float(np.median(projected / time_s))


def _rows(table: ResultTable) -> list[Row]:
    made = ResultTable(
        table.name, table.columns, tuple(r for r in table.rows if "rec" not in str(r[0]))
    )
    equal, unequal = made.where(tau_ratio=1.0), made.where(tau_ratio=_RATIOS[1])
    steady = made.where(pattern=PATTERNS[0].name)
    recorded = table.where(pattern=PATTERNS[8].name)
    source = "as the source"
    return [
        within("Poisson: corrected projection over measured, median", 1.0,
               _typical(steady, "corrected", "high"), 0.9, 1.1,
               "the source says: in a close range"),
        within("high segments not projected too low, equal times: lowest ratio", 1.0,
               _worst(equal, source, "high"), 1.0, None, "as the source projects"),
        within("the same, service times unequal, as the source projects", 1.0,
               _worst(unequal, source, "high"), 1.0, None,
               "tau/(1-p) is not what waits behind longer tuples: the correction below"),
        within("the same, service times unequal, corrected", 1.0,
               _worst(unequal, "corrected", "high"), 1.0, None),
        within("high segments, corrected, projected over measured, median", 1.0,
               _typical(made, "corrected", "high"), 0.9, None),
        within("high segments as found by the detector, lowest ratio", 1.0,
               _worst(made, "as found", "high"), 1.0, None,
               "a dozen arrivals a segment are too few to find it; then the mean rate counts"),
        within("low segments are projected conservatively, median", 1.0,
               _typical(made, "corrected", "low"), 1.0, None),
        within("recorded bursts, corrected, high segments, lowest ratio", 1.0,
               _worst(recorded, "corrected", "high"), 0.9, None),
    ]  # fmt: skip
