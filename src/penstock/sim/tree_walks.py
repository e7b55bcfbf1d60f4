"""Which transfers are feasible in a tree of arrays, which of them fit, and giving them away.

A transfer is the number of its operator, doubled, plus one if it goes down; what moves with it is
found by walking. The rules are those of :mod:`penstock.balance.hierarchy.transfers` and
:mod:`penstock.balance.hierarchy.choosing`.
"""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.compiled import compiled
from penstock.sim.tree_arrays import MOVED, STEPS, Operators, Rules, Scratch, TreeShape


@compiled
def sum_load(operators: Operators, node: int) -> float:
    """How full a node is."""
    total, at = 0.0, operators.heads[node]
    while at >= 0:
        total += operators.sizes[at]
        at = operators.following[at]
    return round(total, 9)


@compiled
def child_towards(shape: TreeShape, node: int, origin: int) -> int:
    """The child through which streams from ``origin`` come to ``node``; -1 from itself."""
    if node == origin:
        return -1
    low = shape.neighbour_starts[node] + (1 if shape.parents[node] >= 0 else 0)
    high = shape.neighbour_starts[node + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if shape.firsts[shape.neighbours[middle]] <= shape.firsts[origin]:
            low = middle
        else:
            high = middle
    towards: int = shape.neighbours[low]
    return towards


@compiled
def walk_up(shape: TreeShape, operators: Operators, operator: int) -> int:
    """Puts what moves up with an operator into the closure; how many these are."""
    return collect_along(shape.reader_starts, shape.readers, operators, operator)


@compiled
def collect_along(starts: Ints, members: Ints, operators: Operators, operator: int) -> int:
    node, count = operators.on[operator], 1
    operators.closure[0] = operator
    at = 0
    while at < count:
        current = operators.closure[at]
        for place in range(starts[current], starts[current + 1]):
            other = members[place]
            if other >= 0 and operators.on[other] == node:
                is_new = True
                for known in range(count):
                    if operators.closure[known] == other:
                        is_new = False
                        break
                if is_new:
                    operators.closure[count] = other
                    count += 1
        at += 1
    return count


@compiled
def walk_down(shape: TreeShape, operators: Operators, operator: int, wide: bool) -> tuple[int, int]:
    """What moves down with an operator, into the closure, and the child it may move to, or -1."""
    node = operators.on[operator]
    count = collect_along(shape.input_starts, shape.inputs, operators, operator)
    child = -1
    for at in range(count):
        current = operators.closure[at]
        begin, end = shape.input_starts[current], shape.input_starts[current + 1]
        if not wide and end - begin != 1:
            return count, -1
        for place in range(begin, end):
            stream = shape.inputs[place]
            origin = operators.on[stream] if stream >= 0 else -stream - 1
            if stream >= 0 and origin == node:
                continue
            way = child_towards(shape, node, origin)
            if way < 0 or (child >= 0 and way != child):
                return count, -1
            child = way
    return count, child


@compiled
def collect_closure(shape: TreeShape, operators: Operators, code: int, wide: bool) -> int:
    """Puts what a transfer consists of into the closure; how many operators these are."""
    if code % 2 == 0:
        return walk_up(shape, operators, code // 2)
    return walk_down(shape, operators, code // 2, wide)[0]


@compiled
def measure_closure(operators: Operators, count: int) -> float:
    total = 0.0
    for at in range(count):
        total += operators.sizes[operators.closure[at]]
    return round(total, 9)


@compiled
def is_resting(operators: Operators, count: int, now_s: float) -> bool:
    for at in range(count):  # noqa: SIM110 (a plain loop is what gets compiled)
        if now_s < operators.rest_until_s[operators.closure[at]]:
            return True
    return False


@compiled
def find_free(
    shape: TreeShape, rules: Rules, operators: Operators, scratch: Scratch,
    node: int, peer: int, most: float, now_s: float,
) -> int:  # fmt: skip
    """Puts what may move to a neighbour now into the scratch; how many transfers these are."""
    found = 0
    goes_up = shape.parents[node] == peer
    at = operators.heads[node]
    while at >= 0:
        if goes_up:
            count = walk_up(shape, operators, at)
            may = True
        else:
            count, child = walk_down(shape, operators, at, rules.wide)
            may = child == peer
        if may and not is_resting(operators, count, now_s):
            size = measure_closure(operators, count)
            if 0 < size <= most:
                scratch.codes[found] = 2 * at + (0 if goes_up else 1)
                scratch.sizes[found] = size
                found += 1
        at = operators.following[at]
    if rules.largest_first:
        sort_largest_first(scratch, found)
    return found


@compiled
def sort_largest_first(scratch: Scratch, count: int) -> None:
    """By insertion, so that equal ones stay in their order; there are few."""
    for at in range(1, count):
        code, size, place = scratch.codes[at], scratch.sizes[at], at
        while place > 0 and scratch.sizes[place - 1] < size:
            scratch.codes[place] = scratch.codes[place - 1]
            scratch.sizes[place] = scratch.sizes[place - 1]
            place -= 1
        scratch.codes[place], scratch.sizes[place] = code, size


@compiled
def refresh(
    shape: TreeShape, rules: Rules, operators: Operators, scratch: Scratch, count: int, now_s: float
) -> int:
    """Keeps of the transfers in the scratch those that are no larger than said, with new sizes."""
    kept = 0
    for at in range(count):
        code = scratch.codes[at]
        members = collect_closure(shape, operators, code, rules.wide)
        size = measure_closure(operators, members)
        if size <= scratch.sizes[at] and not is_resting(operators, members, now_s):
            scratch.codes[kept], scratch.sizes[kept] = code, size
            kept += 1
    return kept


@compiled
def fit(
    shape: TreeShape, rules: Rules, operators: Operators, scratch: Scratch,
    count: int, room: float, stamp: int,
) -> tuple[int, float]:  # fmt: skip
    """Chooses from the scratch what fits and shares no operator marked with ``stamp``."""
    chosen, left = 0, room
    for at in range(count):
        size = scratch.sizes[at]
        if not 0 < size <= left:
            continue
        members = collect_closure(shape, operators, scratch.codes[at], rules.wide)
        is_shared = False
        for place in range(members):
            if operators.marks[operators.closure[place]] == stamp:
                is_shared = True
                break
        if is_shared:
            continue
        for place in range(members):
            operators.marks[operators.closure[place]] = stamp
        scratch.chosen[chosen], scratch.chosen_sizes[chosen] = scratch.codes[at], size
        chosen += 1
        left = round(left - size, 9)
    return chosen, left


@compiled
def give(
    shape: TreeShape,
    rules: Rules,
    operators: Operators,
    counts: Ints,
    code: int,
    to: int,
    now_s: float,
) -> None:
    """Changes the owner of everything that a transfer consists of, in the order of the file."""
    members = collect_closure(shape, operators, code, rules.wide)
    names = np.sort(operators.closure[:members])
    for at in range(members):
        operator = names[at]
        unlink(operators, operator)
        link(operators, operator, to)
        operators.rest_until_s[operator] = now_s + rules.rest_s
    counts[MOVED] += members


@compiled
def unlink(operators: Operators, operator: int) -> None:
    """Takes an operator out of its node's list."""
    before, after = operators.preceding[operator], operators.following[operator]
    node = operators.on[operator]
    if before >= 0:
        operators.following[before] = after
    else:
        operators.heads[node] = after
    if after >= 0:
        operators.preceding[after] = before
    else:
        operators.tails[node] = before


@compiled
def link(operators: Operators, operator: int, node: int) -> None:
    """Appends an operator to a node's list."""
    last = operators.tails[node]
    operators.preceding[operator], operators.following[operator] = last, -1
    if last >= 0:
        operators.following[last] = operator
    else:
        operators.heads[node] = operator
    operators.tails[node] = operator
    operators.on[operator] = node


@compiled
def give_all(
    shape: TreeShape, rules: Rules, operators: Operators, scratch: Scratch,
    node: int, peer: int, count: int, now_s: float, stamp: int,
) -> int:  # fmt: skip
    """The owner gives what is still as agreed and leaves it at its target; how many transfers."""
    spare = round(sum_load(operators, node) - (rules.lower + rules.upper) / 2, 9)
    count = refresh(shape, rules, operators, scratch, count, now_s)
    chosen, _ = fit(shape, rules, operators, scratch, count, spare, stamp)
    for at in range(chosen):
        give(shape, rules, operators, scratch.counts, scratch.chosen[at], peer, now_s)
    scratch.counts[STEPS] += chosen > 0
    return chosen
