"""Studies on real nodes: what can be told of them without any."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.balance.settings import BalanceSettings
from penstock.control.answer_models import MoveAnswer
from penstock.control.records import MoveRecord
from penstock.errors import InputError, RunError
from penstock.feeds.rates import known_rates
from penstock.kernels.engine_choice import light_fragments
from penstock.kernels.group_numbers import group_numbers
from penstock.kernels.join_plan import JoinPlan
from penstock.kernels.planning import plan_fragment
from penstock.lang.deployment import parse_deployment
from penstock.model.durations import US_PER_S
from penstock.model.measurements import FragmentStatus
from penstock.model.partition_groups import PartitionGroups
from penstock.model.parts import GroupChoice, JoinSpread
from penstock.model.settings import settings_of
from penstock.place.fuse import fuse
from penstock.place.rhythm import round_us
from penstock.studies import (
    live_bursts,
    live_join,
    live_join_input,
    live_join_rates,
    live_tree,
    prediction,
    traffic,
)
from penstock.studies.live_system import Delivered, Look, Watched
from penstock.studies.meter_readings import (
    ReportingPhase,
    generated_watts,
    recorded_watts,
    write_readings,
)
from penstock.studies.recording import Stretch, write_packets
from penstock.studies.report import ResultTable, Value, records


def test_the_rates_of_traffic_are_known(tmp_path: Path) -> None:
    traffic.SMALL.write(tmp_path, 0.1, 3)
    text = traffic.SMALL.deployment(tmp_path, "rod", 0.1)
    known = known_rates(parse_deployment(text, "traffic", tmp_path).network)
    assert known == {name: pytest.approx(600, rel=0.2) for name in known}
    assert len(known) == 3


@pytest.mark.parametrize("run", range(traffic._RUNS))
def test_every_run_has_stretches_of_its_own(run: int) -> None:
    needed_s = int(traffic._WARM_S + traffic._MEASURED_S) + traffic._SPARE_S
    for stretch in traffic.FULL.substreams:
        moved = Stretch(stretch.log, stretch.start_s + run * traffic._STRETCH_S)
        assert sum(moved.rates_per_s(needed_s, 1_000.0)) == pytest.approx(
            1_000 * needed_s, rel=0.01
        )


def test_the_source_s_experiment_is_160_light_aggregates_over_ten_streams(tmp_path: Path) -> None:
    text = traffic.FULL.deployment(tmp_path, "rod", 1.0)
    network = parse_deployment(text, "traffic", tmp_path).network
    fragments = fuse(network)
    assert (len(fragments), len(network.streams), traffic.FULL.nodes) == (160, 10, 5)
    assert len(light_fragments(network, fragments)) == 160


def test_overload_points_and_how_sure_they_are() -> None:
    def rows(run: int, strategy: str, overloaded: list[int]) -> list[tuple[object, ...]]:
        return [(run, strategy, float(at), 0, 0, 0, 0, 1, 1, one)
                for at, one in enumerate(overloaded, 1)]  # fmt: skip

    table = ResultTable("traffic", traffic._COLUMNS, tuple(
        row for run in (0, 1)
        for row in (*rows(run, "rod", [0, 0, 0, 1]), *rows(run, "random", [0, 1, 0][: 2 + run]))
    ))  # type: ignore[arg-type]  # fmt: skip
    (found,) = traffic._findings(table)
    assert (found.ours, found.agrees) == (3.0, True)
    assert found.note == "random: 1; rod takes 2 ± 0 more"


@pytest.mark.parametrize("strategy", traffic.STRATEGIES)
def test_traffic_is_one_fragment_a_query(tmp_path: Path, strategy: str) -> None:
    text = traffic.FULL.deployment(tmp_path, strategy, 2.0)
    network = parse_deployment(text, "traffic", tmp_path).network
    fragments = fuse(network)
    assert sorted(fragment.name for fragment in fragments) == sorted(traffic.FULL.query_names())
    assert {round_us(network, fragment, 1) for fragment in fragments} == {traffic.ROUND_S * 1e6}


@pytest.mark.parametrize("scenario", live_bursts.SCENARIOS)
def test_streams_burst_and_two_have_the_same_mean(scenario: str) -> None:
    known = live_bursts.rates(scenario, 240)
    assert all(len(one) == 240 for one in known.values())
    first, second = (np.mean(known[name]) for name in ("first", "second"))
    assert max(first, second) < 2 * min(first, second)
    assert max(known["first"]) > 1.5 * np.mean(known["first"])


def test_packets_come_at_their_rates(tmp_path: Path) -> None:
    count = write_packets(tmp_path / "first.parquet", [300, 0, 20, 1], seed=1)
    times = pq.read_table(tmp_path / "first.parquet")["ts"].cast("int64").to_numpy()
    assert count == len(times) == 321
    assert np.bincount((times - times[0]) // 1_000_000).tolist() == [300, 0, 20, 1]
    assert (np.diff(times) >= 0).all()


def test_what_was_not_recorded_is_not_made_up() -> None:
    with pytest.raises(ValueError, match="nothing was recorded for 300 s"):
        Stretch("dns", 1_200).rates_per_s(300, 10.0)


def test_bursts_are_one_fragment_a_query(tmp_path: Path) -> None:
    text = live_bursts.deployment(tmp_path, tmp_path / "out")
    network = parse_deployment(text, "bursts", tmp_path).network
    assert sorted(one.name for one in fuse(network)) == sorted(live_bursts.query_names())
    assert sorted(live_bursts.nodes_at_first()) == sorted(live_bursts.query_names())


def test_how_it_is_balanced_makes_sense() -> None:
    for policy in live_bursts.POLICIES:
        written = settings_of({"policy": policy, **live_bursts.balance_settings()})
        assert BalanceSettings.checked(written).guards.patience == 1


@pytest.mark.parametrize("rule", ["off", "random", "load"])
def test_the_join_is_shared_out_to_all_nodes(tmp_path: Path, rule: GroupChoice) -> None:
    text = live_join_input.deployment(tmp_path, tmp_path / "out", "3", rule)
    network = parse_deployment(text, "join", tmp_path).network
    spread = JoinSpread(3, live_join_input.GROUPS, rule, live_join_input.EVERY_S * US_PER_S)
    assert network.query("pairs").spread == spread
    (fragment,) = fuse(network)
    plan = plan_fragment(fragment)
    assert isinstance(plan, JoinPlan) and not plan.is_finished_by_spark


def test_one_group_of_a_join_is_hot_and_no_row_of_it_meets_more_than_others() -> None:
    given = live_join_input.JoinInput((2_000, 2_000, 4_000), hot_keys=10)
    rows = given.rows("ts", seed=1).combine_chunks()
    groups = PartitionGroups(("k",), live_join_input.GROUPS)
    counts = np.bincount(group_numbers(rows, groups), minlength=groups.count)
    assert counts.sum() == 8_000
    assert counts[live_join_input.HOT_GROUP] == pytest.approx(2_000, rel=0.1)
    keys = dict(Counter(rows["k"].to_pylist()))
    assert len(keys) == 40
    assert max(keys.values()) < 1.5 * min(keys.values())
    seconds = (rows["ts"].cast("int64").to_numpy() - live_join_input._BEGIN_US) // 1_000_000
    assert np.bincount(seconds).tolist() == [2_000, 2_000, 4_000]


def test_keys_are_fewer_where_pairs_are_cheap() -> None:
    dear, cheap = (live_join_input.JoinInput.of_load([1_000], 0.5, us) for us in (0.2, 0.1))
    assert dear.hot_keys == 2 * cheap.hot_keys


def group_move(at_s: float, groups: list[int], part: int, state: str = "done") -> MoveAnswer:
    numbers = {"groups": groups, "part": part}
    record = MoveRecord(1, "pairs:1", "a", "b", state, True, at_s, at_s, numbers=numbers)  # type: ignore[arg-type]
    return MoveAnswer.of(record)


def test_how_many_parts_have_groups_follows_from_the_moves() -> None:
    # Dealt out to four: 1, 2, 3, 4, 1, 2.
    moves = [
        group_move(9.0, [1, 5], 1),
        group_move(4.0, [3], 1),
        group_move(5.0, [2], 1, "failed"),
        group_move(20.0, [5], 2),
    ]
    found = live_join_rates.degrees(JoinSpread(None, 6), moves)
    assert found == [(0.0, 4), (4.0, 3), (9.0, 2), (20.0, 3)]


def test_what_runs_of_a_join_show() -> None:
    def run(rule: str, p99_s: float, pairs: float, due: float) -> dict[str, Value]:
        return {"case": rule, "nodes": 3, "rule": rule, "latency_p99_s": p99_s,
                "pairs_per_s": pairs, "of_those_due": due, "digest": "d"}  # fmt: skip

    table = records("t", [run("off", 20.0, 60, 0.6), run("random", 4.0, 90, 0.9),
                          run("load", 2.0, 100, 1.0)])  # fmt: skip
    rows = live_join._findings(table)
    assert [row.ours for row in rows] == [1, 1.0, 1.667, 0.1, 1.111, 0.5]
    assert all(row.agrees for row in rows)
    idle = live_join._findings(records("t", [run("off", 9.0, 0, 0.0), run("load", 4.0, 80, 1.0)]))
    assert idle[2].ours == 80 and "there is none with groups that never move" in idle[2].quantity
    worse = records("t", [run("off", 2.0, 100, 1.0), run("load", 4.0, 80, 0.8)])
    assert [row.agrees for row in live_join._findings(worse)] == [True, False, False, False]


def watched() -> Watched:
    looks = tuple(
        Look(at_s, {"n1": at_s / 10}, {"q": FragmentStatus("q", cpu_ms=100 * at_s, backlog_rows=7)})
        for at_s in (1.0, 2.0, 4.0)
    )
    delivered = (Delivered("q", 1.5, 0.5, 3), Delivered("q", 3.0, 0.2, 1))
    move = MoveAnswer.of(MoveRecord(1, "q", "n2", "n1", "done", True, 3.0))
    return Watched(0.0, looks, delivered, {"q": "n1"}, (move,))


def test_what_was_seen_is_summed_up() -> None:
    seen = watched()
    assert seen.grown_per_s("q", "cpu_ms") == pytest.approx(100)
    assert seen.grown_per_s("q", "rows_in") == 0.0
    assert seen.mean_utilisation("n1") == pytest.approx(0.7 / 3)
    assert seen.latencies_s() == [0.2, 0.5]
    assert seen.backlog_rows() == [7, 7, 7]


def test_what_was_seen_since() -> None:
    later = watched().since(2.0)
    assert [look.at_s for look in later.looks] == [2.0, 4.0]
    assert later.latencies_s() == [0.2]
    assert len(later.moves) == 1


def test_costs_are_the_line_through_two_runs() -> None:
    def point(load: float, rate_per_s: float) -> prediction.Point:
        return prediction.Point(rate_per_s, {"q": "n1"}, {"q": load}, {}, {"n1": load}, 1.0)

    cost = prediction.fitted(point(0.3, 1_000), point(0.5, 2_000))["q"]
    assert (cost.fixed, cost.per_rate) == (pytest.approx(0.1), pytest.approx(0.0002))
    assert cost.load(3_000) == pytest.approx(0.7)
    falling = prediction.fitted(point(0.5, 1_000), point(0.3, 2_000))["q"]
    assert falling == prediction.Cost(0.5, 0.0), "no part is below zero"


def test_the_simulator_uses_what_was_measured() -> None:
    costs = {"p": prediction.Cost(0.1, 0.0001), "q": prediction.Cost(0.2, 0.0001)}
    used, latency_s = prediction.simulated(costs, {"p": "n1", "q": "n2"}, 2_000, ["n1", "n2"])
    assert used == {"n1": pytest.approx(0.3, abs=0.02), "n2": pytest.approx(0.4, abs=0.02)}
    assert latency_s > traffic.ROUND_S + 0.3 * traffic.ROUND_S


def test_on_a_full_node_fragments_fall_behind() -> None:
    names = prediction.TRAFFIC.query_names()
    costs = dict.fromkeys(names, prediction.Cost(0.0, 0.001))
    nodes = dict.fromkeys(names[1:], "n2") | {names[0]: "n1"}
    assert prediction.taken_per_s(costs, nodes, 10) == pytest.approx(10 * len(names))
    assert prediction.taken_per_s(costs, nodes, 500) == pytest.approx(500 + 1_000)


def test_what_was_not_measured_has_no_error() -> None:
    assert prediction._beside(3.0, 2.0) == (2.0, 0.5)
    assert prediction._beside(3.0, None) == (None, None)
    assert prediction._beside(3.0, 0.0) == (0.0, None)


def test_meters_report_more_often_for_an_hour(tmp_path: Path) -> None:
    phases = (ReportingPhase(60, 30), ReportingPhase(60, 5), ReportingPhase(60, 30))
    watts = np.arange(3 * 200).reshape(3, 200)
    count = write_readings(tmp_path / "north.parquet", watts, 10, phases)
    written = pq.read_table(tmp_path / "north.parquet")
    times = written["ts"].cast("int64").to_numpy()
    assert (np.diff(times) >= 0).all()
    minutes = (times - times[0]) // 60_000_000
    assert count == len(times)
    assert [int((minutes // 60 == hour).sum()) for hour in range(3)] == [20, 120, 20]
    # What a home reports is what its house used in that minute of its stretch.
    home_4 = written.filter(pc.equal(written["home"], "home-4"))["watts"].to_pylist()
    assert home_4[:2] == [200 + 26 + 7, 200 + 56 + 7]


def test_a_recording_is_read_by_house_and_minute(tmp_path: Path) -> None:
    rows = ["1,60,10.4,1,1,0,0", "2,60,7.0,1,1,0,1", "3,180,12.6,1,1,0,0", "4,121,8.0,1,1,0,1"]
    path = tmp_path / "houses.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert recorded_watts(path).tolist() == [[10, 10, 13], [7, 8, 8]]
    with pytest.raises(InputError, match="is no recording of meters"):
        recorded_watts(tmp_path / "nothing.csv.gz")


def test_without_a_recording_houses_are_made_up() -> None:
    watts = generated_watts()
    assert watts.shape[0] == 40 and watts.shape[1] > 900 and watts.min() >= 0 < watts.max()


def test_homes_are_as_many_as_one_node_cannot_bear() -> None:
    """By what rows cost in a trial, whatever the node does besides."""
    rates = [0.0, 2_000.0, 12_000.0, 12_000.0]
    often_per_s = 0.2
    homes = live_tree.homes_for(rates, [0.1 + rate / 40_000 for rate in rates], often_per_s)
    assert 0.1 + homes * often_per_s / 40_000 == pytest.approx(live_tree._WANTED, abs=0.01)
    nothing = live_tree.homes_for(rates, [0.1] * 4, often_per_s)
    assert nothing == live_tree._MOST_HOMES
    looks = [
        Look(float(at), {"north": 0.5}, {live_tree._WITNESS: FragmentStatus("f", rows_in=100 * at)})
        for at in range(12)
    ]
    seen = Watched(0.0, tuple(looks), (), {}, ())
    assert live_tree._busy_at_rates(seen) == ([100.0] * 7, [0.5] * 7)
    with pytest.raises(RunError, match="too little was seen of the trial"):
        live_tree._busy_at_rates(Watched(0.0, tuple(looks[:6]), (), {}, ()))


def test_districts_of_a_tree_are_one_fragment_a_query(tmp_path: Path) -> None:
    text = live_tree.deployment(tmp_path, tmp_path / "out", 30)
    network = parse_deployment(text, "tree", tmp_path).network
    assert sorted(one.name for one in fuse(network)) == sorted(live_tree.query_names())
    assert {stream.on for stream in network.streams} == {"north", "south"}
    written = settings_of({"policy": "hierarchy", **live_tree.balance_settings()})
    assert BalanceSettings.checked(written).tree is not None
