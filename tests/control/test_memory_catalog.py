"""The catalog of the world means what the real one means: the same words change the same."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from control.made_up import submission
from control.memory_catalog import MemoryCatalog
from control.toys import TroubledCatalog, empty_catalog
from penstock.control.decisions import Assign
from penstock.control.records import NodeRecord, UnitRecord

UNITS, NODES, LIVES = ("readings", "peaks"), ("a", "b"), ("1", "2", "3")


class Both:
    """A real catalog and one in memory that are told the same."""

    def __init__(self, real: TroubledCatalog, rng: random.Random) -> None:
        self.real, self.rng, self.now_s = real, rng, real.now_s()
        self.memory = MemoryCatalog()
        made = [UnitRecord("readings", "intake", 1), UnitRecord("peaks", "fragment", 1)]
        self.memory.units = {unit.name: unit for unit in made}
        real.add(vars(submission()), made)

    def join(self) -> None:
        until_s = self.now_s + self.rng.choice((-60.0, 600.0, 600.0))
        record = NodeRecord(
            self.rng.choice(NODES), 1, 1, self.rng.choice(LIVES), lease_until_s=until_s
        )
        former = self.rng.sample(LIVES, self.rng.randrange(3))
        told = self.real.join(record, former)
        assert told == self.memory.join(record, former, self.now_s)

    def renew(self) -> None:
        node, life = self.rng.choice(NODES), self.rng.choice(LIVES)
        until_s = self.rng.choice((0.0, self.now_s + 900.0))
        told = self.real.renew(node, life, until_s)
        assert told == self.memory.renew(node, life, until_s, self.now_s)

    def assign(self) -> None:
        seen = self.memory.units[self.rng.choice(UNITS)]
        seen = UnitRecord(**{**vars(seen), "epoch": seen.epoch - self.rng.choice((0, 0, 1))})
        node, is_restart = self.rng.choice(NODES), self.rng.random() < 0.3
        self.real.assign(seen, node, is_restart, belongs="b")
        self.memory.carry_out(Assign(seen, node, "", is_restart, belongs="b"), self.now_s)

    def report(self) -> None:
        name, epoch = self.rng.choice(UNITS), self.rng.randrange(4)
        state = self.rng.choice(("running", "failed", "finished"))
        self.real.report(name, epoch, state, "why")
        self.memory.report(name, epoch, state, "why")

    def release(self) -> None:
        name, epoch = self.rng.choice(UNITS), self.rng.randrange(4)
        by = (self.rng.choice(NODES), self.rng.choice(LIVES))
        self.real.release(name, epoch, by)
        self.memory.release(name, epoch, by)

    def drop(self) -> None:
        if self.rng.random() < 0.1:
            self.real.drop(1)
            for name in UNITS:
                self.memory.drop(name)

    def assert_same(self) -> None:
        assert {unit.name: unit for unit in self.real.units()} == self.memory.units
        real = {
            node.name: (node.incarnation, node.is_alive(self.now_s)) for node in self.real.nodes()
        }
        memory = self.memory.nodes.values()
        assert real == {one.name: (one.incarnation, one.is_alive(self.now_s)) for one in memory}


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_say_the_same(seed: int) -> None:
    rng = random.Random(seed)
    with (
        TemporaryDirectory() as folder,
        closing(empty_catalog(Path(folder) / "catalog.db")) as real,
    ):
        both = Both(real, rng)
        steps = (both.join, both.renew, both.assign, both.report, both.release, both.drop)
        for _ in range(30):
            rng.choice(steps)()
            both.assert_same()
