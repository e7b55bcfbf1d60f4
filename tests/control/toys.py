"""A worker that only pretends to work, and a catalog that can be made to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock.control.catalog import Catalog
from penstock.control.recorded_plans import plan_text
from penstock.control.records import BalanceRecord, Submission, UnitRecord
from penstock.control.system import Unit, assemble
from penstock.errors import PenstockError
from penstock.model.measurements import NodeSample


class ToyWorker:
    """Keeps a story of what it was asked to do; can be made to fail, finish, or take its time."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.units: dict[str, Unit] = {}
        self.story: list[str] = []
        self.failures: dict[str, PenstockError] = {}
        self.finished: set[str] = set()
        self.held_back: set[str] = set()
        self.measured = NodeSample(0.0)
        self.reached_s: dict[str, float] = {}
        self.room = True
        self.before: dict[str, Callable[[], None]] = {}

    def _begin(self, what: str) -> None:
        self.before.get(what, lambda: None)()

    def start(self, unit: Unit, epoch: int) -> None:
        assert unit.name not in self.running
        self._begin("start")
        self.story.append(f"start {unit.name} {epoch}")
        self.units[unit.name] = unit
        self.running[unit.name] = epoch

    def warm(self, unit: Unit, epoch: int) -> None:
        self._begin("warm")
        self.story.append(f"warm {unit.name} {epoch}")

    def cool(self, name: str) -> None:
        self._begin("cool")
        self.story.append(f"cool {name}")

    def release(self, name: str, patience_s: float = 0.0) -> None:
        self._begin("release")
        epoch = self.running.pop(name)
        self.failures.pop(name, None)
        self.story.append(f"stop {name} {epoch} {'patiently' if patience_s else 'at once'}")

    def failure(self, name: str) -> PenstockError | None:
        return self.failures.get(name)

    def is_finished(self, name: str) -> bool:
        return name in self.finished

    def is_held_back(self, name: str) -> bool:
        return name in self.held_back

    def milestones(self, name: str) -> dict[str, float]:
        return self.reached_s

    def has_room(self) -> bool:
        return self.room

    def measurements(self) -> NodeSample:
        self._begin("measurements")
        return self.measured


class TroubledCatalog(Catalog):
    """A catalog in front of which something can be put, by the name of what is asked."""

    def __init__(self, url: Any) -> None:
        super().__init__(url)
        self.before: dict[str, Callable[[], None]] = {}

    def _begin_with(self, what: str) -> None:
        self.before.get(what, lambda: None)()

    def join(self, *given: Any, **also: Any) -> bool:
        self._begin_with("join")
        return super().join(*given, **also)

    def renew(self, node: str, incarnation: str, until_s: float) -> bool:
        self._begin_with("renew")
        return super().renew(node, incarnation, until_s)

    def changes(self) -> int:
        self._begin_with("changes")
        return super().changes()

    def report(self, *given: Any, **also: Any) -> None:
        self._begin_with("report")
        super().report(*given, **also)

    def release(self, *given: Any, **also: Any) -> None:
        self._begin_with("release")
        super().release(*given, **also)

    def add(
        self,
        submission: Mapping[str, Any],
        made: list[UnitRecord],
        woken: Iterable[str] = (),
        plan: str = "",
        balance: BalanceRecord | None = None,
    ) -> int:
        """Plans it, unless it is planned already."""
        self._begin_with("add")
        if not plan:
            asked = Submission(**submission)
            plan = plan_text(assemble([*self.submissions(), asked]), asked.id)
        return super().add(submission, made, woken, plan, balance)

    def remove(self, submission: int) -> None:
        self._begin_with("remove")
        super().remove(submission)


@cache
def _empty() -> bytes:
    """A catalog with tables and nothing in them: copying one is quicker than making it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        catalog = Catalog(f"sqlite:///{path}")
        catalog.prepare()
        catalog.close()
        return path.read_bytes()


def empty_catalog(path: Path) -> TroubledCatalog:
    """A new catalog in this file."""
    path.write_bytes(_empty())
    return TroubledCatalog(f"sqlite:///{path}")


def once(work: Callable[[], None]) -> Callable[[], None]:
    """The first time it is called; nothing from then on."""
    left = [work]
    return lambda: left.pop()() if left else None


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work
