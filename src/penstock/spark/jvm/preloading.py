"""State that is read ahead: a coming owner has it in memory before its turn comes.

Spark keeps the state of every run of a query in the process that works on it. Asked for a version
of something it does not have yet, it reads all of it from the checkpoint; of what it has already,
only what was changed since. Spark has no public way to have it read early; what is used here is
internal (``internals.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.model.fragments import Fragment
from penstock.model.operators import Aggregate
from penstock.model.windows import SessionWindow
from penstock.spark.checkpoint_files import last_entry
from penstock.spark.jvm.gateway import Jvm
from penstock.spark.jvm.internals import STATE

_DEFAULT = "default"
_MUCH_BYTES = 1 << 20
"""On disk; in memory it is some fifteen times as much."""


@dataclass(frozen=True)
class _Store:
    """The state of one partition of an operator."""

    operator: int
    partition: int


def preload(session: SparkSession, fragment: Fragment, checkpoint: Path, run: str) -> None:
    """Reads the state of an aggregate as far as ``checkpoint`` has it, for the run of that number.

    Nothing happens where tasks run in other processes than this one's Java, or for other operators.
    """
    aggregates = [operator for operator in fragment.operators if isinstance(operator, Aggregate)]
    committed = last_entry(checkpoint / "commits")
    is_here = str(session.sparkContext.master).startswith("local[")
    if len(aggregates) != 1 or committed is None or not is_here:
        return
    spark = _SparkQuery(session, checkpoint, run, isinstance(aggregates[0].window, SessionWindow))
    for store in _stores(checkpoint / "state"):
        spark.read(store, int(committed.name) + 1)
    if _bytes(checkpoint / "state") >= _MUCH_BYTES:
        # Java makes room now, while the former owner still works, and not in the first batch.
        spark.collect_garbage()


def _bytes(state: Path) -> int:
    """What the largest file of every store comes to: it holds all, where there is much."""
    folders = (state / str(store.operator) / str(store.partition) for store in _stores(state))
    return sum(
        max((file.stat().st_size for file in folder.iterdir()), default=0) for folder in folders
    )


def _stores(state: Path) -> Iterator[_Store]:
    for operator in filter(_is_number, state.iterdir()):
        for partition in filter(_is_number, operator.iterdir()):
            yield _Store(int(operator.name), int(partition.name))


def _is_number(path: Path) -> bool:
    return path.name.isdigit()


class _SparkQuery:
    """The Java side."""

    def __init__(self, session: SparkSession, checkpoint: Path, run: str, is_session: bool) -> None:
        jvm = Jvm(session)
        self._java = jvm.java
        self._scala_object = jvm.scala_object
        state = jvm.session.sessionState()
        self._conf = self._object("StateStoreConf").apply(state.conf())
        self._hadoop = state.newHadoopConf()
        self._root = f"file:{checkpoint.absolute()}/state"
        self._run = self._java("java.util.UUID").fromString(run)
        self._is_session = is_session

    def _object(self, name: str) -> Any:
        return self._scala_object(f"{STATE}.{name}")

    def _id(self, store: _Store) -> Any:
        of = self._java(f"{STATE}.StateStoreId")(
            self._root, store.operator, store.partition, _DEFAULT
        )
        return self._java(f"{STATE}.StateStoreProviderId")(of, self._run)

    def collect_garbage(self) -> None:
        """Has Java look through all of its memory."""
        self._java("java.lang.System").gc()

    def read(self, store: _Store, version: int) -> None:
        """Has the state read in this version."""
        nothing = self._java("scala.Option").empty()
        key, value = self._schemas(store)
        found = self._object("StateStore").getReadOnly(
            self._id(store),
            key,
            value,
            self._encoder(key),
            version,
            nothing,
            nothing,
            False,
            self._conf,
            self._hadoop,
            False,
        )
        found.release()

    def _schemas(self, store: _Store) -> tuple[Any, Any]:
        # Spark keeps them with the first partition only.
        first = self._id(_Store(store.operator, 0))
        name = f"{STATE}.StateSchemaCompatibilityChecker"
        defaults = self._object("StateSchemaCompatibilityChecker")
        checker = self._java(name)(
            first,
            self._hadoop,
            getattr(defaults, "$lessinit$greater$default$3")(),
            getattr(defaults, "$lessinit$greater$default$4")(),
            getattr(defaults, "$lessinit$greater$default$5")(),
        )
        schema = checker.readSchemaFile().head()
        return schema.keySchema(), schema.valueSchema()

    def _encoder(self, key: Any) -> Any:
        if not self._is_session:
            return self._java(f"{STATE}.NoPrefixKeyStateEncoderSpec")(key)
        # Sessions of a key are looked for by all but the last column, their beginning.
        columns = key.length() - 1
        return self._java(f"{STATE}.PrefixKeyScanStateEncoderSpec")(key, columns)
