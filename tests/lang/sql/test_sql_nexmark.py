"""The NEXMark queries: the graphs they give."""

from __future__ import annotations

import pytest
from sql_samples import NEXMARK, drawn, operators, told

QUERIES = {path.stem: path.read_text() for path in sorted(NEXMARK.glob("*.sql"))}

GRAPHS = {
    "q0": "q0 = map(bids) auction, bidder, price, channel, url, ts",
    "q1": "q1 = map(bids) auction, bidder, (0.908D * `price`) AS price, ts",
    "q2": """
        q2_filter = filter(bids) ((`auction` % 123) = 0)
        q2 = map(q2_filter) auction, price, ts
        """,
    "q3": """
        q3_filter = filter(persons) (`state` IN ('OR', 'ID', 'CA'))
        q3_map = map(q3_filter) id, name, city, state, ts
        q3_filter_2 = filter(auctions) (`category` = 10)
        q3_map_2 = map(q3_filter_2) `id` AS right_id, `ts` AS right_ts, seller
        q3_join = join(q3_map, q3_map_2)
            inner on id = seller, right in left +0 seconds .. +1 hour
        q3 = map(q3_join) name, city, state, `right_id` AS id, `right_ts` AS ts
        """,
    "q5": """
        q5_counts_aggregate = aggregate(bids)
            count(*) AS num by auction, 10 seconds every 2 seconds
        q5_counts = map(q5_counts_aggregate)
            auction, num, `window_start` AS starttime, `window_end` AS endtime
        q5_most_aggregate = aggregate(q5_counts) max(`num`) AS num, every 2 seconds
        q5_most = map(q5_most_aggregate) `num` AS right_num, `window_start` AS right_endtime
        q5_join = join(q5_counts, q5_most)
            inner on nothing, right in left +0 seconds .. +0 seconds
        q5 = map(q5_join) auction, num, starttime, endtime
        """,
    "q7": """
        q7_map = map(bids) auction, bidder, price, ts
        q7_highest_aggregate = aggregate(bids) max(`price`) AS price, every 10 seconds
        q7_highest = map(q7_highest_aggregate)
            `price` AS right_price, `window_end` AS endtime
        q7_join = join(q7_map, q7_highest)
            inner on price = right_price, right in left +1 microsecond .. +10 seconds
        q7 = map(q7_join) auction, price, bidder, ts
        """,
    "q8": """
        q8_p_aggregate = aggregate(persons) by id, name, every 10 seconds
        q8_p = map(q8_p_aggregate)
            id, name, `window_start` AS starttime, `window_end` AS endtime
        q8_a_aggregate = aggregate(auctions) by seller, every 10 seconds
        q8_a = map(q8_a_aggregate)
            seller, `window_start` AS right_starttime, `window_end` AS right_endtime
        q8_join = join(q8_p, q8_a)
            inner on id = seller, starttime = right_starttime, right in left {now}
        q8 = map(q8_join) id, name, starttime, endtime
        """.replace("{now}", "+0 seconds .. +0 seconds"),
    "q11": """
        q11_aggregate = aggregate(bids)
            count(*) AS bid_count by bidder, sessions with gaps of 10 seconds
        q11 = map(q11_aggregate)
            bidder, bid_count, `window_start` AS starttime, `window_end` AS endtime
        """,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name: str) -> None:
    assert drawn(QUERIES[name], name) == told(GRAPHS[name])


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("q20", ["filter", "map", "join", "map"]),
        ("q21", ["filter", "map"]),
        ("q22", ["map"]),
    ],
)
def test_kinds(name: str, kinds: list[str]) -> None:
    assert [operator.kind for operator in operators(QUERIES[name], name)] == kinds


@pytest.mark.parametrize("name", QUERIES)
def test_says_what_it_asks_and_can_be_windowed_on(name: str) -> None:
    assert QUERIES[name].startswith("-- ") and QUERIES[name].splitlines()[0].endswith((".", "?"))
    assert operators(QUERIES[name], name)[-1].output.event_time is not None


def test_all_are_here() -> None:
    assert set(QUERIES) == {*GRAPHS, "q20", "q21", "q22"}
