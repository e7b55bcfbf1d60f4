"""Random situations with many ties: few different loads, proportional and constant series."""

import numpy as np
from hypothesis import strategies as st

from penstock.bench.plain.pairs import PairsWorld
from penstock.load.series import LoadSeries

small = st.integers(0, 4)


@st.composite
def quanta(draw: st.DrawFn, most_operators: int = 14, most_samples: int = 6) -> np.ndarray:
    operators = draw(st.integers(1, most_operators))
    samples = draw(st.integers(1, most_samples))
    shapes = draw(
        st.lists(st.lists(small, min_size=samples, max_size=samples), min_size=1, max_size=5)
    )
    rows = [
        np.array(draw(st.sampled_from(shapes))) * draw(st.integers(1, 3)) for _ in range(operators)
    ]
    return np.array(rows, dtype=np.float64)


@st.composite
def worlds(draw: st.DrawFn, least_nodes: int = 2, most_nodes: int = 5) -> PairsWorld:
    loads = draw(quanta())
    nodes = draw(st.integers(least_nodes, most_nodes))
    plan = [draw(st.integers(0, nodes - 1)) for _ in loads]
    movable = [draw(st.sampled_from([True, True, True, False])) for _ in loads]
    capacities = [draw(st.sampled_from([1.0, 1.0, 2.0, 0.7])) for _ in range(nodes)]
    return PairsWorld([row.tolist() for row in loads], plan, movable, capacities)


def series_of(world: PairsWorld) -> LoadSeries:
    loads = np.array(world.loads)
    return LoadSeries(loads, 1.0, np.ones(len(loads)))
