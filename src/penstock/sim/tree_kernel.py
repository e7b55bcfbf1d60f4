"""Large trees of negotiating nodes in a network without faults, compiled.

The steps are those of :mod:`penstock.balance.hierarchy.negotiation` when every message takes
equally long: then no deadline passes, and messages arrive in the order they were sent in. Only
nodes that check, or are told something, do any work. ``tests/sim/test_tree_run.py`` holds both
to the same messages and the same moves.
"""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.sim.tree_arrays import (
    ANSWERS,
    ASKS_DEMAND,
    ASKS_OFFER,
    BUSY,
    CLEAR,
    DEMAND_REPLY,
    DEMAND_REQUEST,
    DEMAND_TRANSFER_REPLY,
    DEMAND_TRANSFER_REQUEST,
    FAILED,
    FREE,
    MESSAGES,
    OFFER_REPLY,
    OFFER_REQUEST,
    OFFER_TRANSFER_REPLY,
    OFFER_TRANSFER_REQUEST,
    SETTLES_DEMAND,
    SETTLES_OFFER,
    Checks,
    Mail,
    Nodes,
    Operators,
    Rules,
    Scratch,
    TreeShape,
)
from penstock.sim.tree_walks import find_free, fit, give_all, refresh, sum_load


@compiled
def send(
    mail: Mail, rules: Rules, counts: Ints, now_s: float, kind: int, sender: int, receiver: int,
    codes: Ints, sizes: Floats, count: int, urgent: int, size: float,
) -> None:  # fmt: skip
    """Appends a message; its transfers are copied."""
    slot = mail.ends[1] % len(mail.kinds)
    start = mail.ends[2]
    # What is overwritten has to be older than any reply that still waits for the others.
    is_full = mail.ends[1] - mail.ends[0] >= len(mail.kinds) // 2
    if is_full or mail.ends[2] + count - mail.ends[3] >= len(mail.codes) // 2:
        counts[FAILED] = 1
        return
    mail.arrives_s[slot] = now_s + rules.delay_s
    mail.kinds[slot], mail.senders[slot], mail.receivers[slot] = kind, sender, receiver
    mail.urgent[slot], mail.sizes[slot] = urgent, size
    mail.starts[slot], mail.counts[slot] = start, count
    for at in range(count):
        place = (start + at) % len(mail.codes)
        mail.codes[place], mail.portions[place] = codes[at], sizes[at]
    mail.ends[1] += 1
    mail.ends[2] += count
    counts[MESSAGES] += 1


@compiled
def unpack(mail: Mail, scratch: Scratch, slot: int) -> int:
    """Puts the transfers of a message into the scratch; how many these are."""
    for at in range(mail.counts[slot]):
        place = (mail.starts[slot] + at) % len(mail.codes)
        scratch.codes[at], scratch.sizes[at] = mail.codes[place], mail.portions[place]
    unpacked: int = mail.counts[slot]
    return unpacked


@compiled
def _sift_down(checks: Checks, nodes: Nodes, place: int) -> None:
    heap, places, count = checks.heap, checks.places, len(checks.heap)
    node = heap[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and _is_before(nodes, heap[child + 1], heap[child]):
            child += 1
        if not _is_before(nodes, heap[child], node):
            break
        heap[place] = heap[child]
        places[heap[place]] = place
        place = child
    heap[place] = node
    places[node] = place


@compiled
def _is_before(nodes: Nodes, one: int, other: int) -> bool:
    first, second = nodes.next_check_s[one], nodes.next_check_s[other]
    return first < second or (first == second and one < other)


@compiled
def _sift_up(checks: Checks, nodes: Nodes, place: int) -> None:
    heap, places = checks.heap, checks.places
    node = heap[place]
    while place > 0 and _is_before(nodes, node, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        places[heap[place]] = place
        place = (place - 1) // 2
    heap[place] = node
    places[node] = place


@compiled
def _check_next_at(checks: Checks, nodes: Nodes, node: int, at_s: float) -> None:
    """Moves a node's next check to another time."""
    nodes.next_check_s[node] = at_s
    _sift_up(checks, nodes, checks.places[node])
    _sift_down(checks, nodes, checks.places[node])


@compiled
def _check(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, node: int, now_s: float,
) -> None:  # fmt: skip
    """A node looks at its load, and asks its neighbours if it is outside the thresholds."""
    begin, end = shape.neighbour_starts[node], shape.neighbour_starts[node + 1]
    if nodes.roles[node] != FREE or begin == end:
        return
    load = sum_load(operators, node)
    target = (rules.lower + rules.upper) / 2
    is_relay = nodes.pressed[node] == 1 and target < load <= rules.upper
    nodes.pressed[node] = 0
    if rules.lower <= load <= rules.upper and not is_relay:
        return
    is_offer = load > rules.upper or is_relay
    nodes.roles[node] = ASKS_OFFER if is_offer else ASKS_DEMAND
    nodes.waiting[node] = end - begin
    nodes.reply_counts[node] = 0
    nodes.met_busy[node] = 0
    for place in range(begin, end):
        peer = shape.neighbours[place]
        if is_offer:
            most = round(load - target, 9)
            count = find_free(shape, rules, operators, scratch, node, peer, most, now_s)
            send(mail, rules, scratch.counts, now_s, OFFER_REQUEST, node, peer,
                  scratch.codes, scratch.sizes, count, 2 if is_relay else 0, 0.0)  # fmt: skip
        else:
            missing = round(target - load, 9)
            send(mail, rules, scratch.counts, now_s, DEMAND_REQUEST, node, peer,
                  scratch.codes, scratch.sizes, 0, 0, missing)  # fmt: skip


@compiled
def room_of(rules: Rules, load: float, is_relay: bool) -> float:
    limit = min(rules.limit, (rules.lower + rules.upper) / 2) if is_relay else rules.limit
    return 0.0 if load > rules.upper else round(limit - load, 9)


@compiled
def _on_request(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, slot: int, now_s: float, stamp: int,
) -> None:  # fmt: skip
    node, peer = mail.receivers[slot], mail.senders[slot]
    if nodes.roles[node] != FREE:
        send(mail, rules, scratch.counts, now_s, BUSY, node, peer,
              scratch.chosen, scratch.chosen_sizes, 0, 0, 0.0)  # fmt: skip
        return
    load, urgent, count = sum_load(operators, node), 0, 0
    if mail.kinds[slot] == OFFER_REQUEST:
        kind = OFFER_REPLY
        if load <= rules.upper:
            offered = unpack(mail, scratch, slot)
            room = room_of(rules, load, mail.urgent[slot] == 2)
            count, _ = fit(shape, rules, operators, scratch, offered, room, stamp)
            urgent = 1 if load <= rules.lower else 0
        codes, sizes = scratch.chosen, scratch.chosen_sizes
    else:
        kind = DEMAND_REPLY
        target = (rules.lower + rules.upper) / 2
        if load > target:
            most = min(mail.sizes[slot], round(load - target, 9))
            count = find_free(shape, rules, operators, scratch, node, peer, most, now_s)
            urgent = 1 if load >= rules.upper else 0
        codes, sizes = scratch.codes, scratch.sizes
    is_relay = mail.kinds[slot] == OFFER_REQUEST and mail.urgent[slot] == 2
    if rules.relay and kind == OFFER_REPLY and not is_relay and not count and mail.counts[slot]:
        nodes.pressed[node] = 1
    if count:
        nodes.roles[node], nodes.partners[node] = ANSWERS, peer
        nodes.relayed[node] = 1 if is_relay else 0
    send(mail, rules, scratch.counts, now_s, kind, node, peer, codes, sizes, count, urgent, 0.0)


@compiled
def _on_reply(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, checks: Checks, slot: int, now_s: float, stamp: int,
) -> None:  # fmt: skip
    node = mail.receivers[slot]
    if mail.kinds[slot] == BUSY:
        nodes.met_busy[node] = 1
    else:
        nodes.replies[shape.neighbour_starts[node] + nodes.reply_counts[node]] = slot
        nodes.reply_counts[node] += 1
    nodes.waiting[node] -= 1
    if nodes.waiting[node] == 0:
        _settle(shape, rules, nodes, operators, mail, scratch, node, now_s, stamp)
        if nodes.met_busy[node]:
            draw = nodes.draws[node, nodes.drawn[node] % nodes.draws.shape[1]]
            nodes.drawn[node] += 1
            _check_next_at(checks, nodes, node, now_s + (0.5 + draw) * rules.period_s)


@compiled
def _settle(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, node: int, now_s: float, stamp: int,
) -> None:  # fmt: skip
    """Chooses among the replies, High first, and answers all of them."""
    is_offer = nodes.roles[node] == ASKS_OFFER
    load, target = sum_load(operators, node), (rules.lower + rules.upper) / 2
    left = round(load - target if is_offer else target - load, 9)
    request = OFFER_TRANSFER_REQUEST if is_offer else DEMAND_TRANSFER_REQUEST
    agreed, first = 0, shape.neighbour_starts[node]
    for urgent in (1, 0):
        for place in range(first, first + nodes.reply_counts[node]):
            slot = nodes.replies[place]
            if mail.urgent[slot] != urgent:
                continue
            count = unpack(mail, scratch, slot)
            if is_offer:
                count = refresh(shape, rules, operators, scratch, count, now_s)
            chosen, left = fit(shape, rules, operators, scratch, count, left, stamp)
            agreed += chosen > 0
            kind, peer = request if chosen else CLEAR, mail.senders[slot]
            send(mail, rules, scratch.counts, now_s, kind, node, peer,
                 scratch.chosen, scratch.chosen_sizes, chosen, 0, 0.0)  # fmt: skip
    nodes.waiting[node] = agreed
    settling = SETTLES_OFFER if is_offer else SETTLES_DEMAND
    nodes.roles[node] = settling if agreed else FREE


@compiled
def _on_transfer_request(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, slot: int, now_s: float, stamp: int,
) -> None:  # fmt: skip
    """The taker of an offer looks again; the owner confirms a demand and gives."""
    node, peer = mail.receivers[slot], mail.senders[slot]
    count = unpack(mail, scratch, slot)
    load = sum_load(operators, node)
    if mail.kinds[slot] == OFFER_TRANSFER_REQUEST:
        room = room_of(rules, load, nodes.relayed[node] == 1)
        chosen, _ = fit(shape, rules, operators, scratch, count, room, stamp)
        kind = OFFER_TRANSFER_REPLY
        if not chosen:
            nodes.roles[node] = FREE
    else:
        chosen = give_all(shape, rules, operators, scratch, node, peer, count, now_s, stamp)
        kind = DEMAND_TRANSFER_REPLY
        nodes.roles[node] = FREE
    send(mail, rules, scratch.counts, now_s, kind, node, peer,
          scratch.chosen, scratch.chosen_sizes, chosen, 0, 0.0)  # fmt: skip


@compiled
def _on_transfer_reply(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, slot: int, now_s: float, stamp: int,
) -> None:  # fmt: skip
    """The owner of an offer gives; who asked is done with one more neighbour."""
    node, peer = mail.receivers[slot], mail.senders[slot]
    if mail.kinds[slot] == OFFER_TRANSFER_REPLY:
        count = unpack(mail, scratch, slot)
        chosen = give_all(shape, rules, operators, scratch, node, peer, count, now_s, stamp)
        send(mail, rules, scratch.counts, now_s, CLEAR, node, peer,
              scratch.chosen, scratch.chosen_sizes, chosen, 0, 0.0)  # fmt: skip
    nodes.waiting[node] -= 1
    if nodes.waiting[node] == 0:
        nodes.roles[node] = FREE


@compiled
def _deliver(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, checks: Checks, slot: int, now_s: float, stamp: int,
) -> None:  # fmt: skip
    kind, node = mail.kinds[slot], mail.receivers[slot]
    if kind in (OFFER_REQUEST, DEMAND_REQUEST):
        _on_request(shape, rules, nodes, operators, mail, scratch, slot, now_s, stamp)
    elif kind in (OFFER_REPLY, DEMAND_REPLY, BUSY):
        _on_reply(shape, rules, nodes, operators, mail, scratch, checks, slot, now_s, stamp)
    elif kind in (OFFER_TRANSFER_REQUEST, DEMAND_TRANSFER_REQUEST):
        _on_transfer_request(shape, rules, nodes, operators, mail, scratch, slot, now_s, stamp)
    elif kind in (OFFER_TRANSFER_REPLY, DEMAND_TRANSFER_REPLY):
        _on_transfer_reply(shape, rules, nodes, operators, mail, scratch, slot, now_s, stamp)
    elif nodes.roles[node] == ANSWERS and nodes.partners[node] == mail.senders[slot]:
        nodes.roles[node] = FREE


@compiled
def run_until(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, checks: Checks, changes: tuple[Floats, Ints, Floats],
    position: Ints, until_s: float,
) -> None:  # fmt: skip
    """Lets everything happen up to a moment: changes of size, then messages, then checks."""
    times_s, changed, new_sizes = changes
    while scratch.counts[FAILED] == 0:
        change_s = times_s[position[0]] if position[0] < len(times_s) else np.inf
        slot = mail.ends[0] % len(mail.kinds)
        mail_s = mail.arrives_s[slot] if mail.ends[0] < mail.ends[1] else np.inf
        node = checks.heap[0]
        check_s = nodes.next_check_s[node]
        if min(change_s, mail_s, check_s) > until_s:
            return
        if change_s <= mail_s and change_s <= check_s:
            operators.sizes[changed[position[0]]] = new_sizes[position[0]]
            position[0] += 1
        elif mail_s <= check_s:
            position[1] += 1
            _deliver(shape, rules, nodes, operators, mail, scratch, checks, slot, mail_s,
                     position[1])  # fmt: skip
            mail.ends[0] += 1
            mail.ends[3] = mail.starts[slot]
        else:
            _check_next_at(checks, nodes, node, check_s + rules.period_s)
            _check(shape, rules, nodes, operators, mail, scratch, node, check_s)


@compiled
def run_sampled(
    shape: TreeShape, rules: Rules, nodes: Nodes, operators: Operators, mail: Mail,
    scratch: Scratch, checks: Checks, changes: tuple[Floats, Ints, Floats],
    times_s: Floats, rows: Floats,
) -> None:  # fmt: skip
    """Lets everything happen, and takes a row of figures at each of the times."""
    position = np.zeros(2, np.int64)
    position[1] = 1
    loads = np.zeros(len(shape.parents))
    for at in range(len(times_s)):
        run_until(shape, rules, nodes, operators, mail, scratch, checks, changes, position,
                  times_s[at])  # fmt: skip
        sample(operators, rules.upper, loads, rows[at])


@compiled
def sample(operators: Operators, upper: float, loads: Floats, row: Floats) -> None:
    """The mean over the nodes, their deviation, how many are above ``upper``, and how far."""
    loads[:] = 0.0
    for operator in range(len(operators.on)):
        loads[operators.on[operator]] += operators.sizes[operator]
    row[0] = loads.mean()
    row[1] = loads.std()
    for node in range(len(loads)):
        above = round(loads[node], 9) - upper
        if above > 0:
            row[2] += 1
            row[3] += above
