"""The composition protocol, step by step, on a network that loses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.model.composition import PlanOperator, QueryPlan
from penstock.share.answers import CompositionOptions, Pick, Question, Sites, answer
from penstock.share.discovery import HashRing, key_of, sharable_points
from penstock.share.messages import Admitted, Compose, Finish, Measured, ProbedStep, Refused
from penstock.share.node_book import Component, NodeBook
from penstock.share.selection import ProbedPaths, best_graphs
from penstock.sim.overlay import Overlay
from share.overlays import chain, diamond, nodes_named, overlay_of

pytestmark = pytest.mark.core


def ask(overlay: Overlay, request: str, plan: QueryPlan, node: str = "v0") -> Admitted | Refused:
    overlay.submit(overlay.now_s, node, Compose(request, plan))
    overlay.run(overlay.now_s + 60)
    return overlay.outcomes[request].result


def book(overlay: Overlay, node: str) -> NodeBook:
    return overlay.nodes[node].book


class TestSharing:
    def test_the_example_of_the_source(self) -> None:
        """Figure 5: s6 and s5 exist, so both are reused and only o5 and o6 are needed."""
        plan = QueryPlan(
            (
                PlanOperator("o1"),
                PlanOperator("o2", ("o1",)),
                PlanOperator("o3", ("o1",)),
                PlanOperator("o4", ("o2",)),
                PlanOperator("o5", ("o3",)),
                PlanOperator("o6", ("o4", "o5")),
            ),
            1.0,
        )
        exist = {plan.streams["o4"], plan.streams["o3"], plan.streams["o1"]}
        found = sharable_points(plan, exist.__contains__)
        assert (set(found.reused), found.needed) == ({"o3", "o4"}, ("o5", "o6"))
        assert found.looked_up == 4

    def test_a_whole_query_is_computed_once(self) -> None:
        overlay = overlay_of()
        first = ask(overlay, "q1", chain("k0", "k1", "k2"))
        second = ask(overlay, "q2", chain("k0", "k1", "k2"), "v1")
        assert isinstance(first, Admitted) and isinstance(second, Admitted)
        assert (first.reused, second.reused) == ((), ("o2",))
        assert second.graph == {"o2": first.graph["o2"]}
        assert sum(len(one.components) for one in overlay.books) == 3

    def test_the_longest_common_part_is_reused(self) -> None:
        overlay = overlay_of()
        ask(overlay, "q1", chain("k0", "k1", "k2"))
        second = ask(overlay, "q2", chain("k0", "k1", "k3"))
        assert isinstance(second, Admitted)
        assert second.reused == ("o1",)
        assert sum(len(one.components) for one in overlay.books) == 4

    def test_what_others_use_stays_when_its_query_ends(self) -> None:
        overlay = overlay_of()
        ask(overlay, "q1", chain("k0", "k1", "k2"))
        ask(overlay, "q2", chain("k0", "k1", "k3"))
        overlay.submit(overlay.now_s, "v0", Finish("q1"))
        overlay.run(overlay.now_s + 60)
        assert sorted(c.stream for b in overlay.books for c in b.components.values()) == [
            "k0()",
            "k1(k0())",
            "k3(k1(k0()))",
        ]
        third = ask(overlay, "q3", chain("k0", "k1", "k2"))
        assert isinstance(third, Admitted) and third.reused == ("o1",)
        for request in ("q2", "q3"):
            overlay.submit(overlay.now_s, "v0", Finish(request))
        overlay.run(overlay.now_s + 60)
        assert not any(b.components or b.apps or b.held for b in overlay.books)
        assert len(overlay.ring) == 5  # type: ignore[arg-type]  # the operators that nodes offer

    def test_a_stream_of_a_full_node_can_still_be_read(self) -> None:
        overlay = overlay_of()
        first = ask(overlay, "q1", chain("k0", "k1"))
        assert isinstance(first, Admitted)
        book(overlay, first.graph["o1"]).background = 0.79
        again = ask(overlay, "q2", chain("k0", "k1"))
        assert isinstance(again, Admitted) and again.reused == ("o1",)

    def test_reuse_is_given_up_where_it_takes_too_long(self) -> None:
        """A stream that is slow since its source does not fit; made anew it does."""
        overlay = overlay_of()
        first = ask(overlay, "q1", chain("k0", "k1"))
        assert isinstance(first, Admitted)
        for component in book(overlay, first.graph["o0"]).components.values():
            component.time_s = 5.0
        second = ask(overlay, "q2", chain("k0", "k2", limit_s=0.2))
        assert isinstance(second, Admitted)
        assert second.reused == ()

    def test_giving_up_one_stream_keeps_the_other(self) -> None:
        plan = QueryPlan(
            (
                PlanOperator("a", (), 0.05, 0.01, 0.05, does="k0"),
                PlanOperator("b", (), 0.05, 0.01, 0.05, does="k1"),
                PlanOperator("c", ("a", "b"), 0.05, 0.01, 0.05, does="k2"),
            ),
            0.2,
        )
        reused = {}
        for gives_up in ("all", "refused"):
            options = CompositionOptions(probing_ratio=1.0, gives_up=gives_up)  # type: ignore[arg-type]
            overlay = overlay_of(options=options)
            ask(overlay, "qa", chain("k0"))
            ask(overlay, "qb", chain("k1"))
            for one in overlay.books:
                for component in one.components.values():
                    component.time_s = 5.0 if component.stream == "k0()" else component.time_s
            found = ask(overlay, "q", plan)
            assert isinstance(found, Admitted)
            reused[gives_up] = found.reused
        assert reused == {"all": (), "refused": ("b",)}


class TestAdmission:
    def test_a_node_that_is_full_is_named(self) -> None:
        overlay = overlay_of(nodes=1, kinds=1, copies=1, background=0.95)
        found = ask(overlay, "q", chain("k0"))
        assert isinstance(found, Refused)
        assert found.reasons == ("limit", "node v0")

    def test_a_running_application_is_not_hurt(self) -> None:
        overlay = overlay_of(nodes=1, kinds=2, copies=1)
        ask(overlay, "q1", chain("k0", need=0.3, limit_s=0.02))
        found = ask(overlay, "q2", chain("k1", need=0.3, limit_s=5.0))
        assert isinstance(found, Refused)
        assert found.reasons == ("app q1",)
        other = overlay_of(nodes=1, kinds=2, copies=1, options=CompositionOptions(projects=False))
        ask(other, "q1", chain("k0", need=0.3, limit_s=0.02))
        assert isinstance(ask(other, "q2", chain("k1", need=0.3, limit_s=5.0)), Admitted)

    def test_measured_times_replace_projections(self) -> None:
        overlay = overlay_of(nodes=1, kinds=2, copies=1)
        ask(overlay, "q1", chain("k0", need=0.1, limit_s=0.05))
        overlay.submit(overlay.now_s, "v0", Measured("q1", 0.0499))
        found = ask(overlay, "q2", chain("k1", need=0.3, limit_s=5.0))
        assert isinstance(found, Refused) and found.reasons == ("app q1",)

    def test_a_link_that_is_full_is_named(self) -> None:
        options = CompositionOptions(probing_ratio=1.0, tries_anew=False, most_sites=0)
        overlay = overlay_of(nodes=2, kinds=0, copies=0, options=options)
        for node, does in (("v0", "k0"), ("v1", "k1")):
            overlay.ring.register(f"component {does}", node)
        book(overlay, "v1").link_used["v0"] = 0.97
        found = ask(overlay, "q", chain("k0", "k1"))
        assert isinstance(found, Refused) and found.reasons == ("limit", "link v0-v1")

    def test_reservations_that_are_not_confirmed_expire(self) -> None:
        overlay = overlay_of(options=CompositionOptions(probing_ratio=1.0, reserve_s=8.0))
        overlay.submit(0.0, "v0", Compose("q", chain("k0", "k1")))
        overlay.run(2.0)
        assert any(b.held for b in overlay.books)
        overlay.run(20.0)
        assert not any(b.held or b.reserved or b.reserved_for for b in overlay.books)
        assert sum(b.booked for b in overlay.books) == pytest.approx(0.2)


class TestDeployment:
    @pytest.mark.parametrize(("selectivity", "beside"), [(0.5, "o0"), (1.0, "o0"), (2.0, "o2")])
    def test_a_missing_operator_goes_where_least_is_sent(
        self, selectivity: float, beside: str
    ) -> None:
        overlay = overlay_of(kinds=2, copies=1, options=CompositionOptions(probing_ratio=1.0))
        plan = chain("k0", "missing", "k1")
        middle = replace(plan.by_name["o1"], selectivity=selectivity)
        plan = QueryPlan((plan.by_name["o0"], middle, plan.by_name["o2"]), plan.limit_s)
        found = ask(overlay, "q", plan)
        assert isinstance(found, Admitted)
        assert found.new == ("o1",)
        assert found.graph["o1"] == found.graph[beside]

    def test_a_deployed_component_is_found_by_others(self) -> None:
        overlay = overlay_of(kinds=1, copies=1, options=CompositionOptions(probing_ratio=1.0))
        first = ask(overlay, "q1", chain("k0", "missing"))
        second = ask(overlay, "q2", chain("k0", "missing", "other"))
        assert isinstance(first, Admitted) and isinstance(second, Admitted)
        assert (second.reused, second.new) == (("o1",), ("o2",))

    def test_the_first_operator_goes_beside_its_reader(self) -> None:
        overlay = overlay_of(kinds=1, copies=1, options=CompositionOptions(probing_ratio=1.0))
        found = ask(overlay, "q", chain("missing", "k0"))
        assert isinstance(found, Admitted)
        assert found.graph["o0"] == found.graph["o1"]

    def test_full_neighbours_are_passed_over(self) -> None:
        names = nodes_named(4)
        options = CompositionOptions(probing_ratio=1.0, neighbours=lambda _: tuple(names))
        overlay = overlay_of(nodes=4, kinds=1, copies=1, options=options)
        (host,) = [b.node for b in overlay.books if b.permanent]
        plan = chain("k0", "missing", need=0.6, limit_s=2.0)
        found = ask(overlay, "q", plan)
        assert isinstance(found, Admitted)
        assert found.graph["o0"] == host != found.graph["o1"]

    @pytest.mark.parametrize("sites", [Sites.NEAREST, Sites.NEAREST_ONLY, Sites.RANDOM])
    def test_rivals_deploy_elsewhere(self, sites: Sites) -> None:
        options = CompositionOptions(sites=sites, neighbours=lambda node: ("v7", "v8"))
        overlay = overlay_of(kinds=1, copies=1, options=options)
        found = ask(overlay, "q", chain("k0", "missing"))
        assert isinstance(found, Admitted)
        assert found.graph["o1"] in ("v7", "v8")


class TestSelection:
    def steps(self, *placed: tuple[str, str, float]) -> tuple[ProbedStep, ...]:
        return tuple(
            ProbedStep(operator, node, load, 1 - load, 0.0, 1.0, 0.01, 0.0)
            for operator, node, load in placed
        )

    def test_paths_become_graphs(self) -> None:
        plan = diamond(("k0", "k1", "k2", "k3"))
        paths = ProbedPaths(plan, frozenset(), frozenset("abcd"))
        paths.add(self.steps(("a", "v1", 0.0), ("b", "v2", 0.0), ("d", "v3", 0.0)))
        assert paths.graphs(10) == []
        paths.add(self.steps(("a", "v1", 0.0), ("c", "v4", 0.0), ("d", "v3", 0.0)))
        (graph,) = paths.graphs(10)
        assert {name: step.node for name, step in graph.items()} == {
            "a": "v1", "b": "v2", "c": "v4", "d": "v3"
        }  # fmt: skip
        paths.add(self.steps(("a", "v5", 0.0), ("b", "v2", 0.0), ("d", "v3", 0.0)))
        assert len(paths.graphs(10)) == 1, "a on v5 was not seen to reach c"

    def test_the_least_loaded_graph_is_first(self) -> None:
        plan = chain("k0", "k1")
        paths = ProbedPaths(plan, frozenset(), frozenset(("o0", "o1")))
        paths.add(self.steps(("o0", "v1", 0.7), ("o1", "v3", 0.0)))
        paths.add(self.steps(("o0", "v2", 0.1), ("o1", "v3", 0.0)))
        graphs, reasons = best_graphs(paths, 10)
        assert [graph.placed["o0"] for graph in graphs] == ["v2", "v1"] and not reasons
        assert graphs[0].phi == pytest.approx(0.1 / 0.9 + 0.1 / 1.0 + 0.05 / 1.0)

    def test_what_fits_one_by_one_may_not_fit_together(self) -> None:
        plan = chain("k0", "k1", need=0.3)
        paths = ProbedPaths(plan, frozenset(), frozenset(("o0", "o1")))
        paths.add(self.steps(("o0", "v1", 0.5), ("o1", "v1", 0.5)))
        assert best_graphs(paths, 10) == ([], ("node v1",))


def test_requests_heard_twice_are_composed_once() -> None:
    overlay = overlay_of()
    for _ in range(3):
        overlay.submit(0.0, "v0", Compose("q", chain("k0")))
    overlay.submit(30.0, "v0", Compose("q", chain("k0")))
    overlay.run()
    assert sum(len(b.components) for b in overlay.books) == 1


def test_candidates_may_be_asked_nearest_first() -> None:
    distance: Mapping[str, float] = dict.fromkeys(nodes_named(10), 1.0) | {"v3": 0.1}
    options = CompositionOptions(pick=Pick.NEAREST, delay_s=lambda _, node: distance[node])
    overlay = overlay_of(kinds=1, copies=10, options=options)
    found = ask(overlay, "q", chain("k0"))
    assert isinstance(found, Admitted) and found.graph == {"o0": "v3"}


@given(st.integers(1, 300), st.text(min_size=1, max_size=8), st.integers(0, 299))
@tried(30)
def test_any_node_finds_a_key_in_few_hops(nodes: int, key: str, asked: int) -> None:
    names = nodes_named(nodes)
    ring = HashRing(names)
    ring.register(key, "somebody")
    found, hops = ring.find(key, names[asked % nodes])
    assert found == ("somebody",)
    assert hops <= 2 * nodes.bit_length()
    owner = min(names, key=lambda name: (key_of(name) - key_of(key)) % (1 << 160))
    assert hops == 0 or owner != names[asked % nodes]
    ring.unregister(key, "somebody")
    assert ring.find(key, names[0])[0] == ()


def test_an_answer_does_not_ask_for_what_is_reserved_already() -> None:
    node = NodeBook("v", background=0.5)
    operator = PlanOperator("o", need=0.4, tau_s=0.01)
    question = Question("q", operator, 1.0)
    first, _ = answer(question, node, CompositionOptions())
    node.reserve("q", "o", 0.4, until_s=8.0)
    second, _ = answer(question, node, CompositionOptions())
    assert first is not None and first == second
    assert answer(question._replace(request="r"), node, CompositionOptions())[1] == (
        "node v",
        "limit",
    )


def test_a_book_forgets_what_has_ended() -> None:
    node = NodeBook("v")
    node.run(Component("c", "s", "k", 0.3, 0.1, 0.1, (("v", "c"),), (("w", 0.2),)))
    node.use("a", ["c"], 1.0, 0.5)
    assert (node.load, node.link_residual("w")) == (0.3, 0.8)
    assert node.broken_apps(0.1) == [] and node.broken_apps(0.69) == ["a"]
    assert [one.name for one in node.leave("a")] == ["c"]
    assert (node.load, node.components, node.streams, node.leave("a")) == (0.0, {}, {}, [])


def test_two_upstream_candidates_are_two_reservations() -> None:
    node = NodeBook("v")
    operator = PlanOperator("o", ("i",), need=0.1, tau_s=0.01)
    for upstream in ("v1", "v2"):
        before = ProbedStep("i", upstream, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0)
        question = Question("q", operator, 1.0, before, bandwidth=0.6)
        assert answer(question, node, CompositionOptions())[0] is not None
        node.reserve_link("q", ("i", "o"), upstream, 0.6, until_s=8.0)
        other = question._replace(request="r")
        assert f"link {upstream}-v" in answer(other, node, CompositionOptions())[1]
    assert (node.link_residual("v1"), node.link_residual("v2")) == (0.4, 0.4)
