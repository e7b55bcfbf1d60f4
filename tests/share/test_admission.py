"""Admission of stated cases: against a plain transcription, and by worked examples."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.cli.admit_command import situation_of
from penstock.errors import InputError
from penstock.lang.admission import parse_admission
from penstock.model.composition import PlanOperator, QueryPlan, RunningApp, RunningComponent
from penstock.share.admission import AdmissionSituation, admission_record, admit, judge
from penstock.share.projection import NodeLoad, Serving
from share import transcription

pytestmark = pytest.mark.core

# Off any grid: no sum of these is exactly a capacity or a limit, where the order of adding would
# decide. Ties are tested below, by name.
LOADS = st.sampled_from((0.0, 0.103, 0.307, 0.511, 0.709, 0.907))
SMALL = st.sampled_from((0.0, 0.053, 0.101, 0.203, 0.499))
NODES = ("v1", "v2", "v3")
PAIRS = ("v1-v2", "v3-v1", "v2-v3")


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    operators: dict[str, Any] = {}
    for at in range(draw(st.integers(1, 4))):
        inputs = (
            draw(st.lists(st.sampled_from(sorted(operators)), unique=True, max_size=2))
            if operators
            else []
        )
        parts = {key: draw(SMALL) for key in ("need", "tau", "bandwidth", "sigma")}
        operators[f"o{at}"] = {"inputs": inputs, **parts}
    components = st.lists(
        st.fixed_dictionaries({"node": st.sampled_from(NODES), "tau": SMALL}), max_size=3
    )
    apps = {
        f"a{at}": {
            "limit": draw(st.sampled_from((1.013, 2.017))),
            "time": draw(st.sampled_from((0.5, 1.0))),
            "components": draw(components),
        }
        for at in range(draw(st.integers(0, 2)))
    }
    placed = st.fixed_dictionaries({name: st.sampled_from(NODES) for name in operators})
    return {
        "nodes": {name: {"load": draw(LOADS)} for name in NODES},
        "links": {name: {"load": draw(LOADS)} for name in PAIRS if draw(st.booleans())},
        "apps": apps,
        "request": {"limit": draw(st.sampled_from((2.011, 3.019, 20.023))), "operators": operators},
        "graphs": {f"g{at}": draw(placed) for at in range(draw(st.integers(1, 4)))},
    }  # fmt: skip


@given(cases())
@tried(100)
def test_against_the_transcription(case: dict[str, Any]) -> None:
    read = parse_admission(json.dumps(case), "case.json")
    found = admission_record(*admit(situation_of(read), read.plan, read.graphs))
    wanted = transcription.admit(case)
    graphs: Any = found["graphs"]
    assert near(chosen_phi(found), chosen_phi(wanted))
    for name, graph in wanted["graphs"].items():
        assert graphs[name]["why"] == graph["why"]
        assert graphs[name]["ok"] == graph["ok"]
        assert near(graphs[name]["time"], graph["time"]) and near(graphs[name]["phi"], graph["phi"])
        assert list(graphs[name]["after"]) == list(graph["after"])
        assert all(map(near, graphs[name]["after"].values(), graph["after"].values()))


def chosen_phi(record: dict[str, Any]) -> float | None:
    choice = record["choice"]
    return None if choice is None else record["graphs"][choice]["phi"]


def near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == pytest.approx(other, rel=1e-12, abs=1e-12)


def test_first_come_first_served_waits_for_the_work_of_others() -> None:
    """A quick component behind a slow one: half of the truth without the correction."""
    plan = QueryPlan((PlanOperator("quick", need=0.1, tau_s=0.01),), 10.0)
    slow = RunningApp("slow", 10.0, 1.0, (RunningComponent("v", 0.1),))
    node = NodeLoad(0.4, 0.4 * 0.1)
    shared = judge(AdmissionSituation({"v": node}, apps=(slow,)), plan, {"quick": "v"})
    served = judge(
        AdmissionSituation({"v": node}, apps=(slow,), serving={"v": Serving.FCFS}),
        plan,
        {"quick": "v"},
    )
    assert shared.time_s == pytest.approx(0.01 / 0.5)
    assert served.time_s == pytest.approx(0.01 + (0.04 + 0.001) / 0.5)
    assert served.after_s["slow"] == pytest.approx(1 + 0.041 / 0.5 - 0.04 / 0.6)


def test_ties_go_to_the_first_name() -> None:
    plan = QueryPlan((PlanOperator("o", need=0.1, tau_s=0.1),), 1.0)
    nodes = {"v": NodeLoad(0.1), "w": NodeLoad(0.1)}
    assert admit(AdmissionSituation(nodes), plan, {"b": {"o": "v"}, "a": {"o": "w"}})[1] == "a"


def test_a_reused_stream_counts_its_link_only() -> None:
    """A stream that is there already needs nothing of its node."""
    plan = QueryPlan(
        (
            PlanOperator("reused", bandwidth=0.2, sigma_s=0.1),
            PlanOperator("o", ("reused",), 0.1, 0.1),
        ),
        5.0,
    )
    situation = AdmissionSituation(
        {"v": NodeLoad(0.99), "w": NodeLoad(0.0)}, {frozenset("vw"): 0.3}
    )
    verdict = judge(situation, plan, {"reused": "v", "o": "w"})
    assert verdict.phi == pytest.approx(0.2 / 0.7 + 0.1 / 1.0)
    assert verdict.time_s == pytest.approx(0.1 / 0.5 + 0.1 / 0.9)


BAD_FILES = {
    ("need: 0.1", "need: -0.1"): "operator o1 has a need of -0.1. Give zero or more.",
    ("inputs: []", "inputs: [o1]"): (
        "these operators read each other in a circle: o1 -> o1. Break it."
    ),
    ("inputs: []", "inputs: [o2]"): "operator o1 reads o2, and there is none. There are o1.",
    ("inputs: []", "inputs: o2"): "inputs of operator o1 must be a list; it is 'o2'",
    ("{o1: v1}", "{o1: v9}"): "no node v9. There are v1, v2.",
    ("{o1: v1}", "{}"): "graph g1 says no node for o1. Give one for every operator.",
    ("{o1: v1}", "{o7: v1}"): "graph g1 places o7, which the request has not. There are o1.",
    ("limit: 1.5", "limit: 0.03"): (
        "the limit 0.03 is below 0.04, which processing takes on nodes without any load. "
        "Give a limit above 0.04."
    ),
    ("limit: 1.5", "limit: soon"): "limit of the request must be a number; it is 'soon'",
    ("v1: {load: 0.4}", "v1: {load: 1.4}"): (
        "node v1 has a load of 1.4. Give the share of its capacity in use, at most 1."
    ),
    ("v1: {load: 0.4}", "v1: {lode: 0.4}"): (
        "no key lode in node v1; the keys are load, serves, load_tau. Did you mean load?"
    ),
    ("v1: {load: 0.4}", "v1: {load: 0.4, serves: fcsf}"): (
        "node v1 serves fcsf. The ways are shared, fcfs. Did you mean fcfs?"
    ),
    ("v1: {load: 0.4}", "v1: {load: 0.4, serves: fcfs}"): (
        "node v1 serves fcfs and has no load_tau. Give the sum of load x tau over what runs on it."
    ),
    ("v1-v2:", "v1-v7:"): (
        "link v1-v7 joins no two nodes. Write it as NODE-NODE. The nodes are v1, v2."
    ),
    ("v1-v2: {load: 0.1}", "v1-v2: {load: 0.1}, v2-v1: {}"): (
        "links v1-v2 and v2-v1 are the same. A link goes both ways; give it once."
    ),
    ("node: v1, tau: 0.05", "node: v3, tau: 0.05"): "no node v3. There are v1, v2.",
    ("time: 1.2", "time: -1"): "application a has a time of -1. Give zero or more.",
    ("graphs:", "graph:"): (
        "no key graph in case.yaml; the keys are nodes, links, apps, request, graphs. "
        "Did you mean graphs?"
    ),
    ("request:", "# request:"): "case.yaml has no request. Add request: …",
}


@pytest.mark.parametrize("change", BAD_FILES)
def test_bad_files_are_told_in_words(change: tuple[str, str]) -> None:
    assert change[0] in CASE
    with pytest.raises(InputError) as caught:
        parse_admission(CASE.replace(*change), "case.yaml")
    assert str(caught.value).splitlines()[-1] == BAD_FILES[change]
    assert caught.value.place is not None


CASE = """\
nodes: {v1: {load: 0.4}, v2: {}}
links: {v1-v2: {load: 0.1}}
apps: {a: {limit: 2.0, time: 1.2, components: [{node: v1, tau: 0.05}]}}
request: {limit: 1.5, operators: {o1: {inputs: [], need: 0.1, tau: 0.04, bandwidth: 0.05}}}
graphs: {g1: {o1: v1}}
"""


def test_names_of_nodes_may_have_hyphens() -> None:
    text = CASE.replace("v2", "rack-2-v2")
    case = parse_admission(text, "case.yaml")
    assert set(case.links) == {frozenset(("v1", "rack-2-v2"))}
