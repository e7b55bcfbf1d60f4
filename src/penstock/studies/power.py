"""What devices spend when the server ships operators to them (figures 5 to 10)."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats
from penstock.studies.figures import Figure
from penstock.studies.placement_runs import mean_by, numbers
from penstock.studies.power_runs import (
    LIMIT,
    RATIO,
    RATIOS,
    RIVALS,
    RUNS,
    SETS,
    TOWARDS_LOW,
    UNIFORM,
    PowerWorkload,
    crossing,
    mean_energies,
    saved_percent,
)
from penstock.studies.power_scatter import MANY_SETS, QUICK_SETS, scatter_of, scatter_rows
from penstock.studies.power_weighted import gains_of, optimum_of, weighted_rows
from penstock.studies.report import (
    ResultTable,
    Row,
    Runner,
    Say,
    StudyReport,
    Value,
    gathered,
    near,
    records,
    within,
)
from penstock.studies.running import one_by_one

SORTED, INDEXED = "sorted", "indexed"
COSTS = (1e6, 50e6, 100e6, 150e6, 200e6, 250e6, 300e6, 350e6, 400e6, 450e6)
QUERIES = (20, 50, 100, 150, 200, 250, 300)
LEVELS = tuple(range(2, 21, 2))
Tables = dict[tuple[str, str], ResultTable]

_SWEEPS = {
    "ratio": (SORTED, INDEXED),
    "cost": (SORTED,),
    "queries": (SORTED, INDEXED),
    "levels": (SORTED, INDEXED),
}
_VARIANTS: dict[str, PowerWorkload] = {
    "as specified": PowerWorkload(),
    "costs by zipf to 100 M": PowerWorkload(costs=TOWARDS_LOW),
    "costs uniform": PowerWorkload(costs=UNIFORM),
    "power-up of 1 J": PowerWorkload(power_up_j=1.0),
    "power-up of 10 J": PowerWorkload(power_up_j=10.0),
}
_PUBLISHED = {(SORTED, 0.01): 48.0, (SORTED, 0.2): 21.0, (INDEXED, 0.01): 53.0, (INDEXED, 0.2): 7.0}


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Four algorithms on two broadcasts; sets of 15 runs, their mean and deviation."""
    points = [
        (sweep, organisation, number, quick)
        for sweep, organisations in _SWEEPS.items()
        for organisation in organisations
        for number in range(SETS)
    ]
    found = run(measure, points, say)
    tables = {
        (sweep, organisation): gathered(
            f"power-{sweep}-{organisation}",
            [
                part
                for point, part in zip(points, found, strict=True)
                if point[:2] == (sweep, organisation)
            ],
        )
        for sweep, organisations in _SWEEPS.items()
        for organisation in organisations
    }
    variants = [(name, number) for name in _VARIANTS for number in range(SETS)]
    sensitivity = _summed_up(gathered("power-sensitivity", run(varied, variants, say)))
    gains = gathered("power-weighted", run(gains_of, range(SETS), say))
    optimum = gathered("power-optimum", run(optimum_of, range(SETS), say))
    sets = range(QUICK_SETS if quick else MANY_SETS)
    scatter = gathered("power-scatter", run(scatter_of, sets, say))
    rows = (
        *_rows(tables),
        *scatter_rows(scatter),
        *_shapes(tables),
        *weighted_rows(gains, optimum),
    )
    setup = (
        f"{SETS} sets of {RUNS} runs; quotients of a set's means, then their mean and deviation "
        f"over the sets. Published numbers agree within {LIMIT} deviations, crossings if the next "
        "point of the grid is the source's."
    )
    every = (*tables.values(), sensitivity, scatter, gains, optimum)
    return StudyReport("power", rows, every, _figures(), setup)


def measure(point: tuple[str, str, int, bool]) -> list[dict[str, Value]]:
    """One set of one sweep: the mean energies of all algorithms at every point."""
    sweep, organisation, number, quick = point
    found: list[dict[str, Value]] = []
    for x, energies in _energies(sweep, organisation, number, quick):
        for rival, energy_j in energies.items():
            found.append(
                {
                    "set": number,
                    "x": x,
                    "algorithm": rival,
                    "energy_j": energy_j,
                    "per_query_j": energy_j / (x if sweep == "queries" else 50),
                    "to_min_data_cut": energy_j / energies["MinDataCut"],
                }
            )
    return found


def _energies(
    sweep: str, organisation: str, number: int, quick: bool
) -> list[tuple[float, dict[str, float]]]:
    if sweep == "ratio":
        found = mean_energies("power", number, PowerWorkload(), organisation, RATIOS)
        return [(ratio, found[ratio]) for ratio in RATIOS]
    workloads: dict[float, PowerWorkload] = {
        "cost": {cost: PowerWorkload(costs=cost) for cost in COSTS[:: 3 if quick else 1]},
        "queries": {
            float(queries): PowerWorkload(queries=queries)
            for queries in QUERIES[:: 3 if quick else 1]
        },
        "levels": {float(levels): PowerWorkload(levels=levels) for levels in LEVELS},
    }[sweep]
    return [
        (x, mean_energies(f"power-{sweep}", number, workload, organisation, (RATIO,))[RATIO])
        for x, workload in workloads.items()
    ]


def varied(point: tuple[str, int]) -> list[dict[str, Value]]:
    """One set of one variant of the workload: BOSe under ServerOps at both ends."""
    name, number = point
    found: list[dict[str, Value]] = []
    for organisation in (SORTED, INDEXED):
        energies = mean_energies("power", number, _VARIANTS[name], organisation, (0.01, 0.2))
        for ratio, by_rival in energies.items():
            saved = saved_percent(by_rival, "BOSe", "ServerOps")
            found.append(
                {"variant": name, "organisation": organisation, "ratio": ratio, "saved": saved}
            )
    return found


def _summed_up(table: ResultTable) -> ResultTable:
    """The variants with mean, deviation, and how far away the source's number is."""
    found: list[dict[str, Value]] = []
    for name in _VARIANTS:
        for (organisation, ratio), source in _PUBLISHED.items():
            part = table.where(variant=name, organisation=organisation, ratio=ratio)
            mean, deviation = _mean_and_deviation(numbers(part.column("saved")))
            found.append(
                {
                    "variant": name,
                    "organisation": organisation,
                    "ratio": ratio,
                    "source_percent": source,
                    "saved_percent": mean,
                    "deviation": deviation,
                    "deviations_away": abs(mean - source) / deviation,
                }
            )
    return records(table.name, found)


def _mean_and_deviation(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1))


def _by_set(table: ResultTable) -> list[dict[float, dict[str, float]]]:
    """For every set, by x and algorithm, the energies."""
    found: dict[Value, dict[float, dict[str, float]]] = {}
    columns = ("set", "x", "algorithm", "energy_j")
    for number, x, rival, energy in zip(*map(table.column, columns), strict=True):
        assert isinstance(x, float) and isinstance(energy, float)
        found.setdefault(number, {}).setdefault(x, {})[str(rival)] = energy
    return list(found.values())


def _saved(
    tables: Tables, where: tuple[str, str], x: float, source: float, than: str = "ServerOps",
    note: str = "",
) -> Row:  # fmt: skip
    sets = _by_set(tables[where])
    mean, deviation = _mean_and_deviation(
        [saved_percent(energies[x], "BOSe", than) for energies in sets]
    )
    what = f"ratio {x:g}" if where[0] == "ratio" else f"{x:g} queries"
    return near(
        f"{where[1]}, {what}: BOSe under {than}, %", source, mean, LIMIT * deviation,
        note=f"± {deviation:.2g}{note}",
    )  # fmt: skip


def _crosses(tables: Tables, where: tuple[str, str], worse: str, better: str, source: float) -> Row:
    """From where on ``better`` is below ``worse``."""
    places = []
    for energies in _by_set(tables[where]):
        xs = sorted(energies)
        places.append(crossing(xs, [energies[x][better] - energies[x][worse] for x in xs]))
    mean, deviation = _mean_and_deviation(places)
    before = xs[xs.index(source) - 1]
    return within(
        f"{where[1]}: {better} under {worse} from which {where[0]}", source, mean, before, source,
        note=f"± {deviation:.2g}; the next point of the grid counts",
    )  # fmt: skip


def _rows(tables: Tables) -> list[Row]:
    ratio, slip = ("ratio", SORTED), "; MinPowerCut is about that much under ServerOps: a slip?"
    return [
        _saved(tables, ratio, 0.01, 48.0),
        _saved(tables, ratio, 0.2, 21.0),
        _saved(tables, ratio, 0.2, 4.0, "MinPowerCut", slip),
        _saved(tables, ("ratio", INDEXED), 0.01, 53.0),
        _saved(tables, ("ratio", INDEXED), 0.2, 7.0),
        _saved(tables, ("queries", SORTED), 300.0, 42.0),
        _crosses(tables, ratio, "MinDataCut", "MinPowerCut", 0.08),
        _crosses(tables, ("ratio", INDEXED), "MinDataCut", "ServerOps", 0.04),
        _crosses(tables, ("levels", SORTED), "MinDataCut", "ServerOps", 8.0),
    ]


def _shapes(tables: Tables) -> list[Row]:
    """What the source says of its curves."""
    ratio, indexed = tables["ratio", SORTED], tables["ratio", INDEXED]
    queries, per_query = tables["queries", SORTED], "per_query_j"
    constant, flat = (
        _curve(ratio, "ServerOps"),
        _curve(tables["queries", INDEXED], "BOSe", per_query),
    )
    same = np.abs(_curve(indexed, "BOSe") / _curve(indexed, "MinPowerCut") - 1)
    slopes = {rival: _line(queries, rival, per_query)[0] for rival in RIVALS}
    flatter = max(slopes["MinDataCut"], slopes["BOSe"])
    steeper = min(slopes["ServerOps"], slopes["MinPowerCut"])
    straight = min(_line(queries, rival, per_query)[1] for rival in RIVALS)
    return [
        within("sorted: ServerOps over the ratios, largest / least", 1.0,
               float(constant.max() / constant.min()), 1 - 1e-9, 1 + 1e-9),
        within("sorted: MinDataCut over the ratios, straightness (R²)", 1.0,
               _line(ratio, "MinDataCut")[1], low=0.999999),
        within("sorted, any ratio: BOSe over the best rival, most", None, _worst(ratio), high=1.0),
        within("sorted, any cost: BOSe over the best rival, most", None,
               _worst(tables["cost", SORTED]), high=1.0),
        within("indexed, any ratio: BOSe is MinPowerCut, largest difference", 0.0,
               float(same.max()), high=1e-9),
        within("sorted, per query against queries: least straightness (R²)", None, straight,
               low=0.98, note="the source: all increase linearly"),
        within("sorted, the same: slope of MinDataCut and BOSe over the others'", None,
               flatter / steeper, high=1.0),
        within("indexed, per query against queries: largest / least", 1.0,
               float(flat.max() / flat.min()), high=1.15, note="the source: the same throughout"),
        within("indexed, any levels: a rival over MinDataCut, most", None,
               _most_of_rivals(tables["levels", INDEXED]), high=1.0,
               note="the source: outperformed from the start"),
    ]  # fmt: skip


def _worst(table: ResultTable) -> float:
    """BOSe over the best of its rivals, where that is most."""
    rivals = [_curve(table, rival) for rival in RIVALS if rival != "BOSe"]
    return float(np.max(_curve(table, "BOSe") / np.min(rivals, axis=0)))


def _most_of_rivals(table: ResultTable) -> float:
    """What rivals need compared with MinDataCut, at most."""
    others = [rival for rival in RIVALS if rival != "MinDataCut"]
    return float(np.max([_curve(table, rival, "to_min_data_cut") for rival in others]))


def _curve(table: ResultTable, rival: str, column: str = "energy_j") -> Floats:
    part = table.where(algorithm=rival)
    xs = sorted(set(numbers(part.column("x"))))
    return np.array([mean_by(part, column, x=x) for x in xs])


def _line(table: ResultTable, rival: str, column: str = "energy_j") -> tuple[float, float]:
    """The slope of the straight line through a curve, and how straight the curve is."""
    ys = _curve(table, rival, column)
    xs = sorted(set(numbers(table.column("x"))))
    slope = float(np.polyfit(xs, ys, 1)[0])
    return slope, float(np.corrcoef(xs, ys)[0, 1] ** 2)


def _figures() -> tuple[Figure, ...]:
    """Figures 5 to 10 of the source, under our names."""
    ratio, levels = "processing power / tuning power", "levels per query"
    total, normed = "joules of all devices", "energy / MinDataCut's"
    drawn = (
        ("ratio", SORTED, "energy_j", ratio, total),
        ("ratio", INDEXED, "energy_j", ratio, total),
        ("cost", SORTED, "energy_j", "least cycles per tuple", total),
        ("queries", SORTED, "per_query_j", "queries", "joules per query"),
        ("levels", SORTED, "to_min_data_cut", levels, normed),
        ("levels", INDEXED, "to_min_data_cut", levels, normed),
    )
    return tuple(
        Figure(
            f"power-{sweep}-{organisation}", f"power-{sweep}-{organisation}", "x", column,
            by="algorithm", title=f"{organisation} broadcast", x_label=x_label, y_label=y_label,
        )
        for sweep, organisation, column, x_label, y_label in drawn
    )  # fmt: skip
