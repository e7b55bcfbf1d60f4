"""What the catalog has of nodes: their leases, where they take messages, what they measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from penstock.control.catalog_database import CatalogDatabase, count_change
from penstock.control.codec import Codec
from penstock.control.records import Contact, NodeRecord
from penstock.control.tables import contacts, nodes, samples
from penstock.model.measurements import MeasuredUse, NodeSample

_KEPT_SAMPLES = 600
_LOADS: Codec[MeasuredUse] = Codec(MeasuredUse)


class NodeRows(CatalogDatabase):
    """The part of a catalog that is about nodes."""

    def nodes(self) -> tuple[NodeRecord, ...]:
        """All nodes by name."""
        with self._read() as connection:
            rows = connection.execute(sa.select(nodes).order_by(nodes.c.name))
            return tuple(NodeRecord(**row) for row in rows.mappings())

    def declare(self, node: NodeRecord) -> None:
        """Makes a node known that has not joined yet."""
        with self._begin() as connection:
            known = sa.select(nodes.c.name).where(nodes.c.name == node.name)
            if connection.execute(known).scalar() is None:
                connection.execute(sa.insert(nodes), vars(node))

    def hang(self, parents: Mapping[str, str | None]) -> None:
        """Records the parents of nodes, from their next start on."""
        with self._begin() as connection:
            for name, parent in parents.items():
                mine = nodes.c.name == name
                connection.execute(sa.update(nodes).where(mine).values(parent=parent))
            count_change(connection)

    def resize(self, node: str, cores: int, memory_bytes: int) -> None:
        """Changes what a node has, from its next start on."""
        values = {"cores": cores, "memory_bytes": memory_bytes}
        with self._begin() as connection:
            connection.execute(sa.update(nodes).where(nodes.c.name == node).values(**values))

    def join(self, node: NodeRecord, former: Collection[str] = ()) -> bool:
        """Records that a new process runs the node, with a lease; False if another one does.

        ``former`` are lives that whoever joins had itself: their leases need not have run out.
        """
        now_s = self.now_s()
        mine = nodes.c.name == node.name
        is_free = (nodes.c.lease_until_s <= now_s) | nodes.c.incarnation.in_(former)
        with self._begin() as connection:
            told = {key: value for key, value in vars(node).items() if key != "parent"}
            values = sa.update(nodes).where(mine, is_free).values(**told)
            if connection.execute(values).rowcount:
                return True
            is_known = connection.execute(sa.select(nodes.c.name).where(mine)).scalar() is not None
            if not is_known:
                connection.execute(sa.insert(nodes), vars(node))
            return not is_known

    def renew(self, node: str, incarnation: str, until_s: float) -> bool:
        """Prolongs a lease; False if it has run out: others may have seen that."""
        is_left = nodes.c.lease_until_s > self.now_s()
        mine = (nodes.c.name == node, nodes.c.incarnation == incarnation, is_left)
        with self._begin() as connection:
            renewal = sa.update(nodes).where(*mine).values(lease_until_s=until_s)
            return bool(connection.execute(renewal).rowcount)

    def publish(self, node: str, life: str, address: str) -> None:
        """Makes known where a node takes messages in this life."""
        values = {"life": life, "address": address, "heard": {}, "heard_s": self.now_s()}
        with self._begin() as connection:
            told = sa.update(contacts).where(contacts.c.node == node).values(**values)
            if not connection.execute(told).rowcount:
                connection.execute(sa.insert(contacts), {"node": node, **values})

    def note_heard(self, node: str, heard: Mapping[str, float]) -> None:
        """Records how old what a node has heard of others is."""
        values = {"heard": dict(heard), "heard_s": self.now_s()}
        with self._begin() as connection:
            connection.execute(sa.update(contacts).where(contacts.c.node == node).values(**values))

    def contacts(self) -> dict[str, Contact]:
        """Where the living nodes take messages: nobody else is to be told or listened to."""
        is_present = (contacts.c.node == nodes.c.name) & (contacts.c.life == nodes.c.incarnation)
        present = sa.select(contacts).join(nodes, is_present)
        present = present.where(nodes.c.lease_until_s > self.now_s()).order_by(contacts.c.node)
        with self._read() as connection:
            rows = connection.execute(present).mappings()
            return {row["node"]: Contact(**row) for row in rows}

    def forget_node(self, node: str) -> None:
        """Takes a node out."""
        with self._begin() as connection:
            connection.execute(sa.delete(contacts).where(contacts.c.node == node))
            connection.execute(sa.delete(nodes).where(nodes.c.name == node))
            connection.execute(sa.delete(samples).where(samples.c.node == node))

    def sample(self, node: str, measured: NodeSample) -> None:
        """Keeps what a node measured; a bounded series for each."""
        row = {"node": node, "at_s": measured.at_s, "numbers": measured}
        with self._begin() as connection:
            connection.execute(sa.insert(samples).values(**row))
            ours = samples.c.node == node
            newest = sa.select(samples.c.id).where(ours).order_by(samples.c.id.desc())
            cut = newest.offset(_KEPT_SAMPLES).limit(1).scalar_subquery()
            connection.execute(sa.delete(samples).where(ours, samples.c.id <= cut))

    def samples(self, node: str, last: int = _KEPT_SAMPLES) -> tuple[NodeSample, ...]:
        """A node's latest measurements, oldest first."""
        asked = sa.select(samples.c.numbers).where(samples.c.node == node)
        with self._read() as connection:
            found = connection.execute(asked.order_by(samples.c.id.desc()).limit(last))
            return tuple(reversed(found.scalars().all()))

    def loads(self, node: str, last: int, after_s: float = 0.0) -> list[MeasuredUse]:
        """How busy a node was at its latest measurements after some time, oldest first."""
        # As text: a driver would make dictionaries of all that is in it.
        text = sa.type_coerce(sa.cast(samples.c.numbers, sa.Text), sa.Text)
        asked = sa.select(text).where(samples.c.node == node, samples.c.at_s > after_s)
        with self._read() as connection:
            found = connection.execute(asked.order_by(samples.c.id.desc()).limit(last)).scalars()
            return [_LOADS.decode(measured) for measured in reversed(found.all())]

    def samples_since(self, node: str, since_s: float) -> tuple[NodeSample, ...]:
        """A node's measurements from a time on, oldest first, and the last one before it."""
        ours = samples.c.node == node
        before = sa.select(sa.func.max(samples.c.id)).where(ours, samples.c.at_s <= since_s)
        first = sa.func.coalesce(before.scalar_subquery(), 0)
        asked = sa.select(samples.c.numbers).where(ours, samples.c.id >= first)
        with self._read() as connection:
            return tuple(connection.execute(asked.order_by(samples.c.id)).scalars())

    def latest_sample(self, node: str) -> NodeSample | None:
        """What a node measured last."""
        found = self.samples(node, 1)
        return found[0] if found else None
