"""The bench of cuts measures what it says."""

from penstock.bench.plain.cuts import PlainCuts
from penstock.bench.power import chains
from penstock.bench.registry import BENCHES
from penstock.model.devices import ORGANISATIONS
from penstock.power.bose import bose
from penstock.power.cuts import cut_table


def test_it_is_known() -> None:
    assert "power" in BENCHES


def test_both_sides_do_the_same_work() -> None:
    for organisation in ORGANISATIONS:
        problem = chains(15, 6, organisation)
        table = cut_table(problem)
        assert table.cut_numbers(bose(table)).tolist() == PlainCuts(problem).bose()
