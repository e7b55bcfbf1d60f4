"""Random power problems, with more ties and zeros than life has; and some that take many steps."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from penstock.model.devices import ORGANISATIONS, Broadcast, DeviceProfile
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem


def _numbers(low: float, high: float, *round_ones: float) -> st.SearchStrategy[float]:
    """Round numbers, whose sums and products are exact and therefore equal now and then, or any."""
    return st.sampled_from(round_ones) | st.floats(low, high)


_OPERATORS = st.builds(
    ChainOperator,
    _numbers(0, 8, 0.0, 1.0, 2.0, 4.0),
    _numbers(0.05, 3, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0),
    _numbers(0.05, 3, 0.25, 0.5, 1.0, 2.0, 4.0),
    st.sampled_from(("",) * 9 + ("join",)),
)


@st.composite
def problems(
    draw: st.DrawFn,
    organisations: tuple[str, ...] = ORGANISATIONS,
    most_queries: int = 8,
    most_operators: int = 5,
) -> PowerProblem:
    """A problem whose queries share sources and devices."""
    sources = tuple(
        ChainSource(f"s{at}", draw(_numbers(1, 20, 1.0, 8.0)), draw(_numbers(1, 20, 4.0)))
        for at in range(draw(st.integers(1, 2)))
    )
    devices = tuple(
        DeviceProfile(
            f"d{at}",
            draw(_numbers(1, 8, 1.0, 2.0)),
            draw(_numbers(0, 4, 0.0, 0.25, 1.0)),
            draw(_numbers(0.1, 4, 0.0, 1.0, 2.0)),
        )
        for at in range(draw(st.integers(1, 4)))
    )
    raw_cut = draw(st.booleans())
    queries = tuple(
        ChainQuery(
            f"q{at}",
            draw(st.sampled_from(sources)).name,
            tuple(
                draw(
                    st.lists(
                        st.sampled_from([device.name for device in devices]),
                        min_size=1,
                        max_size=3,
                        unique=True,
                    )
                )
            ),
            tuple(draw(st.lists(_OPERATORS, min_size=1, max_size=most_operators))),
        )
        for at in range(draw(st.integers(1, most_queries)))
    )
    broadcast = Broadcast(
        draw(st.sampled_from(organisations)),
        draw(_numbers(1, 8, 1.0, 4.0)),
        cycle_s=draw(st.sampled_from((0.5, 1.0))),
        raw_cut=raw_cut,
        power_up_j=draw(st.sampled_from((0.0, 0.5))),
        index_entry_bytes=draw(st.sampled_from((0.0, 2.0))),
        descriptor_bytes=draw(st.sampled_from((0.0, 1.0))),
    )
    return PowerProblem(broadcast, sources, devices, queries)


def busy_problem(seed: int, organisation: str = "sorted") -> PowerProblem:
    """A problem of which BOSe takes several steps: least data is early, and computing is dear.

    Sizes are powers of two, so that many results are equally long, and listeners differ.
    """
    rng = np.random.default_rng(seed)
    devices = [f"d{at}" for at in range(3)]
    return PowerProblem(
        Broadcast(organisation, 1.0),
        (ChainSource("s", 8.0, 1.0),),
        tuple(DeviceProfile(name, 8.0, 1.0, 2.0**at) for at, name in enumerate(devices)),
        tuple(
            ChainQuery(
                f"q{at}",
                "s",
                tuple(rng.permutation(devices)[: rng.integers(1, 4)].tolist()),
                tuple(
                    ChainOperator(float(rng.integers(1, 20)), float(rng.choice((0.5, 1.0, 2.0))))
                    for _ in range(rng.integers(3, 9))
                ),
            )
            for at in range(rng.integers(4, 13))
        ),
    )


def busy_problems() -> st.SearchStrategy[PowerProblem]:
    """Such problems, of any organisation."""
    return st.builds(busy_problem, st.integers(0, 2**32), st.sampled_from(ORGANISATIONS))
