"""Cycles as bytes: what is in them, and that who listens hears what the model says."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.model.devices import ORGANISATIONS, Broadcast
from penstock.power.air.cycle import (
    AirCycle,
    AirResult,
    CycleHead,
    encode_cycle,
    payload_of,
    rows_of,
)
from penstock.power.air.events import Absent, Heard
from penstock.power.air.packets import DESCRIPTOR_BYTES, ENTRY_BYTES
from penstock.power.air.tuner import Tuner
from penstock.power.cuts import CutTable
from penstock.power.energy import cycle_bytes, heard_bytes

results = st.lists(
    st.tuples(st.binary(min_size=1, max_size=60), st.sampled_from((0.5, 1.0, 3.0))),
    min_size=1,
    max_size=6,
)


def cycle_of(
    organisation: str, given: list[tuple[bytes, float]], cycle: int = 1, key: bytes = b"k"
) -> AirCycle:
    return encode_cycle(
        CycleHead(organisation, 1, cycle, 1_000, key),
        [AirResult(at, 7, payload, watts) for at, (payload, watts) in enumerate(given)],
    )


def model_of(organisation: str, given: list[tuple[bytes, float]]) -> CutTable:
    """The same results in the model, with the sizes that are sent."""
    count = len(given)
    return CutTable(
        Broadcast(organisation, 1.0, index_entry_bytes=ENTRY_BYTES),
        tuple(f"q{at}" for at in range(count)),
        np.arange(count + 1),
        np.zeros(count, dtype=np.int64),
        np.array([float(len(payload) + DESCRIPTOR_BYTES) for payload, _ in given]),
        np.zeros(count),
        np.array([watts for _, watts in given]),
        np.ones(count, dtype=np.int64),
    )


@given(st.sampled_from(ORGANISATIONS), results, st.integers(1, 50), st.integers(1, 3))
def test_receivers_tune_to_as_many_bytes_as_the_model_says(
    organisation: str, given: list[tuple[bytes, float]], piece: int, cycles: int
) -> None:
    model = model_of(organisation, given)
    expected = heard_bytes(model, model.roots)
    stream = [cycle_of(organisation, given, number) for number in range(1, cycles + 1)]
    assert len(stream[0].data) == cycle_bytes(model, model.roots)
    for query, (payload, _) in enumerate(given):
        assert sum(map(len, stream[0].tuned_ranges(query))) == expected[query]
        tuner = Tuner({query}, b"k")
        sent = b"".join(cycle.data for cycle in stream)
        events = [
            event
            for at in range(0, len(sent), piece)
            for event in tuner.feed(sent[at : at + piece])
        ]
        assert events == [Heard(1, number, query, 7, payload) for number in range(1, cycles + 1)]
        assert tuner.tuning.tuned_bytes == expected[query] * cycles
        assert tuner.tuning.tuned_bytes + tuner.tuning.slept_bytes == len(sent)
        most = 2 if organisation == "indexed" else 1
        assert cycles <= tuner.tuning.power_ups <= most * cycles


@given(st.sampled_from(ORGANISATIONS), results)
def test_who_finds_nothing_knows_it(organisation: str, given: list[tuple[bytes, float]]) -> None:
    cycle = cycle_of(organisation, given)
    tuner = Tuner({99}, b"k")
    assert tuner.feed(cycle.data) == [Absent(1, 1, 99)]
    assert tuner.tuning.tuned_bytes == sum(map(len, cycle.tuned_ranges(99)))


def test_one_device_with_several_queries() -> None:
    for organisation in ORGANISATIONS:
        cycle = cycle_of(organisation, [(b"a" * 9, 1.0), (b"b", 1.0), (b"c" * 5, 1.0)])
        tuner = Tuner({0, 1}, b"k")
        heard = {event.query: event.payload for event in tuner.feed(cycle.data)}
        assert heard == {0: b"a" * 9, 1: b"b"}
        tuned = {place for query in (0, 1) for part in cycle.tuned_ranges(query) for place in part}
        assert tuner.tuning.tuned_bytes == len(tuned)


def test_an_empty_payload() -> None:
    cycle = encode_cycle(CycleHead("sorted", 1, 1, 1_000), [AirResult(1, 0, b"")])
    assert Tuner({1}).feed(cycle.data) == [Heard(1, 1, 1, 0, b"")]


def test_what_cannot_be_sent() -> None:
    with pytest.raises(InputError, match="a cycle has two results of one query"):
        encode_cycle(CycleHead("sorted", 1, 1, 1), [AirResult(1, 0, b"a"), AirResult(1, 0, b"b")])


def test_rows_survive_and_nonsense_does_not() -> None:
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us", "UTC")), "kwh": [0.5, None]})
    payload = payload_of(table)
    found = rows_of(payload)
    assert found is not None and found.equals(table)
    assert rows_of(payload[:-9]) is None or rows_of(payload[:-9]).num_rows <= 2
    assert rows_of(payload[40:]) is None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_changed_rows_are_read_or_refused_but_never_more(at: int, change: int) -> None:
    """Seals keep such payloads out; what passes them by must still not bring the device down."""
    payload = bytearray(payload_of(pa.table({"home": ["a", "bb"], "kwh": [0.5, 1.5]})))
    payload[at % len(payload)] ^= change
    found = rows_of(bytes(payload))
    assert found is None or found.nbytes < 10_000
