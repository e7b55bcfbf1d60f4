"""From an abstract network to the block of a simulated world."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Ints
from penstock.model.abstract import AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim import block as at
from penstock.sim.arrivals import Arrivals, Recorded
from penstock.sim.block import NONE, Block, block_of
from penstock.sim.clock import NEVER
from penstock.sim.physics import Physics
from penstock.sim.random import streams_of
from penstock.sim.sources import describe_source

PIECE = 65_536
"""Recorded times that a source can be given at once."""
_FIRST_TUPLES = 4_096


@dataclass(frozen=True)
class Layout:
    """Where in the block everything begins."""

    nodes: int
    operators: int
    sources: int
    readers: int
    slots: int
    tree: int
    leaves: int
    bins: int
    log: int
    log_room: int
    buffers: int
    tuples: int


def layout_of(network: AbstractNetwork, recorded: int, log_room: int) -> Layout:
    """The places for a network with so many recorded sources."""
    nodes, operators, sources = len(network.nodes), len(network.operators), len(network.inputs)
    arcs = sum(len(operator.inputs) for operator in network.operators)
    slots = 2 * nodes + sources
    leaves = 1 << max(1, (slots - 1).bit_length())
    sizes = {
        "nodes": nodes * at.NODE_WORDS,
        "operators": operators * at.OPERATOR_WORDS,
        "sources": sources * at.SOURCE_WORDS,
        "readers": arcs * at.READER_WORDS,
        "slots": leaves * at.SLOT_WORDS,
        "tree": 2 * leaves,
        "bins": at.BIN_COUNT,
        "log": log_room * at.LOG_WORDS,
        "buffers": recorded * PIECE,
    }
    starts, first = {}, at.HEADER
    for name, size in sizes.items():
        starts[name] = first
        first += size
    return Layout(**starts, leaves=leaves, log_room=log_room, tuples=first)


def built(
    network: AbstractNetwork,
    arrivals: Sequence[Arrivals],
    assignment: Ints,
    physics: Physics,
    seed: int,
    layout: Layout,
) -> Block:
    """The world at time 0, before the first arrival is scheduled."""
    block = block_of(layout.tuples)
    _header(block, network, physics, layout)
    _slots(block, layout)
    _nodes(block, network, physics, layout)
    readers = _readers(block, network, layout)
    _operators(block, network, physics, layout, assignment, seed, readers)
    _sources(block, network, arrivals, layout, seed, readers)
    return with_room(block, _FIRST_TUPLES)


def with_room(block: Block, tuples: int) -> Block:
    """The same world with so many more places for tuples."""
    old = block.whole.size
    whole = np.concatenate((block.whole, np.zeros(tuples * at.TUPLE_WORDS, np.int64)))
    places = old + np.arange(tuples) * at.TUPLE_WORDS
    whole[places + at.AFTER] = np.append(places[1:], whole[at.FREE])
    whole[at.FREE] = places[0]
    whole[at.FREE_COUNT] += tuples
    return Block(whole, whole.view(np.float64))


def places(block: Block, layout: Layout) -> int:
    """How many tuples there is room for."""
    return int((block.whole.size - layout.tuples) // at.TUPLE_WORDS)


def _header(block: Block, network: AbstractNetwork, physics: Physics, layout: Layout) -> None:
    block.real[at.DELAY_S] = physics.delay_s
    block.real[at.TRANSFER_COST_S] = network.transfer_cost_s
    block.whole[at.TURN] = physics.turn
    block.whole[at.FREE] = NONE
    for word, value in (
        (at.SLOTS, layout.slots),
        (at.TREE, layout.tree),
        (at.LEAVES, layout.leaves),
        (at.BINS, layout.bins),
        (at.LOG, layout.log),
        (at.LOG_ROOM, layout.log_room),
    ):
        block.whole[word] = value


def _slots(block: Block, layout: Layout) -> None:
    """Nothing is scheduled; any slot may win meanwhile."""
    slots = layout.slots + np.arange(layout.leaves) * at.SLOT_WORDS
    block.real[slots + at.TIME] = NEVER
    block.whole[layout.tree + layout.leaves + np.arange(layout.leaves)] = slots
    for inner in range(layout.leaves - 1, 0, -1):
        block.whole[layout.tree + inner] = block.whole[layout.tree + 2 * inner]


def _own(block: Block, layout: Layout, slot: int, owner: int) -> int:
    block.whole[layout.slots + slot * at.SLOT_WORDS + at.OWNER] = owner
    return slot


def _nodes(block: Block, network: AbstractNetwork, physics: Physics, layout: Layout) -> None:
    count = len(network.nodes)
    for number, spec in enumerate(network.nodes):
        node = layout.nodes + number * at.NODE_WORDS
        block.whole[node + at.NODE_SLOT] = _own(block, layout, number, node)
        block.whole[node + at.LINK_SLOT] = _own(block, layout, count + number, node)
        block.real[node + at.SPEED] = spec.cpu
        block.real[node + at.BYTES_PER_S] = _bandwidth(network, spec)
        is_in_turn = physics.discipline == "round-robin"
        block.whole[node + at.DISCIPLINE] = at.ROUND_ROBIN if is_in_turn else at.FCFS
        block.whole[[node + at.SERVING, node + at.READY, node + at.LAST_READY]] = NONE


def _bandwidth(network: AbstractNetwork, node: AbstractNode) -> float:
    limits = (node.bandwidth_per_s, network.bandwidth_per_s)
    return min((float(limit) for limit in limits if limit is not None), default=math.inf)


def _operators(
    block: Block,
    network: AbstractNetwork,
    physics: Physics,
    layout: Layout,
    assignment: Ints,
    seed: int,
    readers: Mapping[str, tuple[int, int]],
) -> None:
    draws = streams_of(seed, 0, len(network.operators))
    sizes = _tuple_bytes(network)
    for number, operator in enumerate(network.operators):
        record = layout.operators + number * at.OPERATOR_WORDS
        block.whole[record + at.KIND] = _kind(operator, physics)
        block.real[record + at.COST_S] = operator.cost_s
        block.whole[record + at.IS_RANDOM_COST] = physics.service == "exponential"
        block.real[record + at.SELECTIVITY] = (
            1.0 if operator.selectivity is None else operator.selectivity
        )
        block.whole[record + at.IS_RANDOM_CHOICE] = physics.selectivity == "random"
        block.real[record + at.WINDOW_S] = physics.windows_s.get(
            operator.name, operator.window_s or 0.0
        )
        block.real[record + at.TUPLE_BYTES] = sizes[operator.name]
        block.whole[record + at.NODE] = layout.nodes + assignment[number] * at.NODE_WORDS
        block.whole[record + at.DRAWS] = draws[number]
        block.whole[[record + at.READERS, record + at.READERS_END]] = readers[operator.name]


def _kind(operator: AbstractOperator, physics: Physics) -> int:
    if operator.is_join:
        return at.JOIN
    return at.COLLECT if operator.name in physics.windows_s else at.PLAIN


def _tuple_bytes(network: AbstractNetwork) -> dict[str, float]:
    sizes = {stream.name: stream.tuple_bytes for stream in network.inputs}
    for operator in network.operators:
        widest = max(sizes[name] for name in operator.inputs)
        sizes[operator.name] = widest if operator.tuple_bytes is None else operator.tuple_bytes
    return sizes


def _readers(block: Block, network: AbstractNetwork, layout: Layout) -> dict[str, tuple[int, int]]:
    """Writes the readers of every input and operator down; gives where each one's are."""
    found: dict[str, list[tuple[int, int]]] = {stream.name: [] for stream in network.inputs}
    found |= {operator.name: [] for operator in network.operators}
    for number, operator in enumerate(network.operators):
        record = layout.operators + number * at.OPERATOR_WORDS
        for port, name in enumerate(operator.inputs):
            found[name].append((record, port if operator.is_join else 0))
    places, first = {}, layout.readers
    for name, readers in found.items():
        end = first + len(readers) * at.READER_WORDS
        block.whole[first:end] = np.array(readers, dtype=np.int64).ravel()
        places[name] = (first, end)
        first = end
    return places


def _sources(
    block: Block,
    network: AbstractNetwork,
    arrivals: Sequence[Arrivals],
    layout: Layout,
    seed: int,
    readers: Mapping[str, tuple[int, int]],
) -> None:
    draws = streams_of(seed, 1, len(arrivals))
    rhythms = streams_of(seed, 2, len(arrivals))
    buffer = layout.buffers
    for number, (stream, how) in enumerate(zip(network.inputs, arrivals, strict=True)):
        source = layout.sources + number * at.SOURCE_WORDS
        slot = _own(block, layout, 2 * len(network.nodes) + number, source)
        block.whole[source + at.SOURCE_SLOT] = slot
        block.whole[source + at.SOURCE_DRAWS] = draws[number]
        block.whole[source + at.RHYTHM] = rhythms[number]
        first, end = readers[stream.name]
        block.whole[[source + at.SOURCE_READERS, source + at.SOURCE_READERS_END]] = first, end
        if isinstance(how, Recorded):
            block.whole[source + at.BUFFER] = buffer
            buffer += PIECE
        describe_source(block, source, how, seed)
