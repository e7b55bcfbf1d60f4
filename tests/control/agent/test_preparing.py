"""The target of a move gets ready before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from control.agent.facts import (
    give,
    state,
)
from control.made_up import submission
from control.toys import ToyWorker, TroubledCatalog, raising, started
from penstock.control.agent import Agent
from penstock.control.records import UnitRecord
from penstock.errors import RunError
from waiting import until


class TestPreparing:
    def begin(self, catalog: TroubledCatalog, **told: object) -> int:
        row = {
            "unit": "peaks",
            "source": "b",
            "target": "a",
            "state": "preparing",
            "created_s": 1.0,
        }
        return catalog.add_moves([{**row, **told}])[0]

    def test_the_target_of_a_move_gets_ready_once(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            self.begin(catalog)
            until(lambda: catalog.moves()[0].is_warm)
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
        assert worker.story[:2] == ["warm peaks 1", "start peaks 1"]

    def test_nobody_else_does(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            self.begin(catalog, target="c")
            self.begin(catalog, state="moving")
            self.begin(catalog, state="failed")
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
        assert not any("warm" in line for line in worker.story)

    @pytest.mark.parametrize(
        ("error", "text"), [(RunError("no room"), "no room"), (KeyError("x"), "KeyError: 'x'")]
    )
    def test_what_goes_wrong_is_told(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        error: Exception,
        text: str,
    ) -> None:
        worker.before["warm"] = raising(error)
        with started(make()):
            self.begin(catalog)
            until(lambda: catalog.moves()[0].error == text)
        assert not catalog.moves()[0].is_warm

    def test_every_move_is_prepared_also_after_others_were_removed(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            for _ in range(2):
                number = self.begin(catalog)
                until(lambda: catalog.moves()[0].is_warm)
                catalog.remove(1)
                catalog.add(vars(submission()), [UnitRecord("peaks", "fragment", 1)])
            assert [line for line in worker.story if "warm" in line] == ["warm peaks 1"] * 2
            assert number == 2

    def test_what_was_got_ready_in_vain_is_let_go(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            number = self.begin(catalog)
            until(lambda: catalog.moves()[0].is_warm)
            catalog.change_move(number, state="failed")
            until(lambda: "cool peaks" in worker.story)
            number = self.begin(catalog)
            until(lambda: catalog.moves()[1].is_warm)
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.change_move(number, state="done")
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert worker.story.count("cool peaks") == 1
