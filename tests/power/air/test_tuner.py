"""Hostile airwaves: garbage, cuts, replays and forgeries are skipped, and what is lost is told."""

from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.model.devices import ORGANISATIONS
from penstock.power.air.cycle import AirResult, CycleHead, encode_cycle
from penstock.power.air.events import Absent, AirEvent, Heard, Lost, Missed
from penstock.power.air.packets import DESCRIPTOR_BYTES, ENTRY_BYTES, MARK, Descriptor, IndexEntry
from penstock.power.air.tuner import Tuner

KEY = b"secret"
organisations = st.sampled_from(ORGANISATIONS)


def sent(organisation: str, cycle: int, broadcast: int = 1, key: bytes = KEY) -> bytes:
    """A cycle with results of 10, 20 and 30 bytes for queries 1, 2, 3."""
    head = CycleHead(organisation, broadcast, cycle, 1_000, key)
    return encode_cycle(
        head, [AirResult(query, cycle, bytes([query]) * 10 * query) for query in (1, 2, 3)]
    ).data


def told(tuner: Tuner, *pieces: bytes) -> list[AirEvent]:
    return [event for piece in pieces for event in tuner.feed(piece)]


def heard(query: int, cycle: int, broadcast: int = 1) -> Heard:
    return Heard(broadcast, cycle, query, cycle, bytes([query]) * 10 * query)


@tried(100)
@given(organisations, st.lists(st.binary(max_size=200), max_size=4), st.integers(1, 64))
def test_garbage_around_cycles_is_skipped(
    organisation: str, noises: list[bytes], piece: int
) -> None:
    stream = b"".join(noise + sent(organisation, at + 1) for at, noise in enumerate(noises))
    pieces = [stream[at : at + piece] for at in range(0, len(stream), piece)]
    tuner = Tuner({2}, KEY)
    assert told(tuner, *pieces) == [heard(2, at + 1) for at in range(len(noises))]
    assert tuner.tuning.garbage_bytes == sum(map(len, noises))


@tried(200)
@given(organisations, st.data())
def test_no_damage_makes_up_a_result(organisation: str, data: st.DataObject) -> None:
    """Bytes changed, cut out and put in: what is heard was sent, once, in order."""
    stream = bytearray(b"".join(sent(organisation, cycle) for cycle in range(1, 5)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        length = data.draw(st.integers(0, 90))
        put = data.draw(st.binary(max_size=90))
        stream[at : at + length] = put
    events = told(Tuner({1, 3}, KEY), bytes(stream), sent(organisation, 9), sent(organisation, 10))
    results = [event for event in events if isinstance(event, Heard)]
    assert all(event == heard(event.query, event.cycle) for event in results)
    order = [(event.cycle, event.query) for event in results]
    assert len(set(order)) == len(order)
    assert [cycle for cycle, _ in order] == sorted(cycle for cycle, _ in order)
    assert {(10, 1), (10, 3)} <= set(order) or {(9, 1), (9, 3)} <= set(order)


@tried(100)
@given(organisations, st.integers(0, 400))
def test_what_a_cut_costs_is_told(organisation: str, cut: int) -> None:
    """A cycle that breaks off: its result came, is lost or was missed; the others are there."""
    first, second = sent(organisation, 1), sent(organisation, 2)
    tuner = Tuner({3}, KEY)
    events = told(tuner, first, second[: cut % len(second)], *[sent(organisation, 3)] * 1)
    events += told(tuner, *(sent(organisation, cycle) for cycle in (4, 5, 6, 7)))
    assert events[0] == heard(3, 1) and events[-1] == heard(3, 7)
    covered = set()
    for event in events:
        if isinstance(event, Missed):
            covered |= set(range(event.first, event.last + 1))
        else:
            covered.add(event.cycle)
    assert covered == set(range(1, 8))


@given(organisations, st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_replays_are_heard_once(organisation: str, cycles: list[int]) -> None:
    tuner = Tuner({1}, KEY)
    events = told(tuner, *(sent(organisation, cycle) for cycle in cycles))
    newest, expected = 0, []
    for cycle in cycles:
        if cycle > newest:
            expected.append(heard(1, cycle))
            newest = cycle
    assert [event for event in events if isinstance(event, Heard)] == expected


@given(organisations)
def test_a_broadcast_that_started_again_goes_on_and_the_former_is_a_replay(
    organisation: str,
) -> None:
    tuner = Tuner({1}, KEY)
    pieces = [sent(organisation, 5), sent(organisation, 1, 2), sent(organisation, 6)]
    assert told(tuner, *pieces, sent(organisation, 3, 2)) == [
        heard(1, 5),
        heard(1, 1, 2),
        Missed(2, 2, 2),
        heard(1, 3, 2),
    ]
    assert tuner.tuning.replayed_packets > 0


@given(organisations)
def test_forged_cycles_are_garbage(organisation: str) -> None:
    forged = sent(organisation, 1, key=b"guess") + sent(organisation, 2, key=b"")
    tuner = Tuner({1}, KEY)
    assert told(tuner, forged, sent(organisation, 1)) == [heard(1, 1)]
    assert tuner.tuning.garbage_bytes == len(forged)


@given(organisations, st.integers(0, 500))
def test_who_comes_late_gets_the_next_cycle(organisation: str, late: int) -> None:
    first = sent(organisation, 1)
    tuner = Tuner({1}, KEY)
    events = told(tuner, first[late % len(first) :], sent(organisation, 2), sent(organisation, 3))
    assert events[-1] == heard(1, 3)
    assert not any(isinstance(event, Absent) for event in events)


def test_a_damaged_result_is_lost_and_not_absent() -> None:
    for organisation in ORGANISATIONS:
        stream = bytearray(sent(organisation, 1))
        place = stream.index(bytes([2]) * 20)
        stream[place] ^= 1
        tuner = Tuner({2}, KEY)
        assert told(tuner, bytes(stream), sent(organisation, 2)) == [Lost(1, 1, 2), heard(2, 2)]
        stream[place] ^= 1
        stream[place - 1] ^= 1
        tuner = Tuner({2}, KEY)
        assert told(tuner, bytes(stream), sent(organisation, 2)) == [Lost(1, 1, 2), heard(2, 2)]


def test_impossible_sizes_are_refused_whoever_sealed_them() -> None:
    huge = Descriptor(1, 1, 1, 0, 1, 0, 0, 0, 1 << 40, 0, bytes(16)).encode(KEY)
    far = Descriptor(1, 1, 2, 0, 1, 0, 0, 0, 1, 1 << 50, bytes(16)).encode(KEY)
    beyond = Descriptor(1, 1, 2, 3, 3, 0, 0, 0, 1, 1, bytes(16)).encode(KEY)
    outside = IndexEntry(1, 1, 1, 0, 1, 10_000, 500).encode(KEY)
    tuner = Tuner({1}, KEY)
    assert told(tuner, huge, far, beyond, outside, sent("sorted", 1)) == [heard(1, 1)]
    assert tuner.tuning.garbage_bytes == 3 * DESCRIPTOR_BYTES + ENTRY_BYTES


def test_an_open_broadcast_cannot_be_made_to_look_at_bytes_for_ever() -> None:
    """Descriptors inside descriptors, each announcing a large payload that it does not have."""
    lie = Descriptor(1, 1, 1, 0, 1, 0, 0, 0, 50_000, 0, bytes(16)).encode(b"")
    tuner = Tuner({1})
    tuner.feed(lie * 2_000)
    assert tuner._second_looks >= 0
    assert tuner.tuning.tuned_bytes <= len(lie) * 2_000


def test_marks_alone_are_nothing() -> None:
    tuner = Tuner({1}, KEY)
    assert told(tuner, MARK * 1_000, sent("sorted", 1)) == [heard(1, 1)]
