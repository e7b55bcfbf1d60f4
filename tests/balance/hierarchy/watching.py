"""What must hold at every moment of a simulated tree, looked at while it happens."""

from __future__ import annotations

from penstock.balance.hierarchy.instructions import ChangeOwner
from penstock.balance.hierarchy.messages import MessageType, NegotiationId, NegotiationMessage
from penstock.balance.hierarchy.settings import Accept, HierarchySettings
from penstock.balance.hierarchy.state import Answering, Asking, NegotiatingNode, Settling
from penstock.sim.tree_world import Outage, SizeChange, TreeWorld, Watcher

_CONSENTS = (MessageType.OFFER_TRANSFER_REPLY, MessageType.DEMAND_TRANSFER_REQUEST)
_REQUESTS = (MessageType.OFFER_TRANSFER_REQUEST, MessageType.DEMAND_TRANSFER_REQUEST)
_EPSILON = 1e-6


def _is_same(
    was: Asking | Settling | Answering | None, held: Asking | Settling | Answering
) -> bool:
    """Whether a negotiation goes on; one can be joined again after its end, by a late request."""
    if was is None or was.id != held.id:
        return False
    return not isinstance(held, Answering) or was.until_s == held.until_s


class SafetyWatcher(Watcher):
    """Collects everything that must not happen, in words."""

    def __init__(self, settings: HierarchySettings, is_sound_network: bool) -> None:
        self.settings = settings
        self.violations: list[str] = []
        self.world: TreeWorld
        self._is_sound_network = is_sound_network
        self._begun_s: dict[tuple[str, NegotiationId], float] = {}
        self._stopped_until_s: dict[str, float] = {}
        self._changed_s: dict[str, float] = {}
        self._consented_s: dict[tuple[str, NegotiationId], float] = {}
        self._requested: dict[tuple[str, NegotiationId], set[str]] = {}
        self._moved_s: dict[str, tuple[float, str]] = {}
        self._was_taken_over = False

    def on_message(self, now_s: float, message: NegotiationMessage) -> None:
        key = message.sender, message.negotiation
        if message.type in _CONSENTS and message.transfers:
            self._consented_s.setdefault(key, now_s)
        if message.type in _REQUESTS:
            names = [name for portion in message.transfers for name in portion.operators]
            seen = self._requested.setdefault(key, set())
            if len(set(names)) < len(names) or seen & set(names):
                self._tell(now_s, f"{message.sender} promises an operator twice: {message}")
            seen.update(names)

    def on_size(self, now_s: float, change: SizeChange, node: str) -> None:
        self._changed_s[node] = now_s

    def on_outage(self, now_s: float, outage: Outage) -> None:
        known_s = self._stopped_until_s.get(outage.node, 0.0)
        self._stopped_until_s[outage.node] = max(known_s, outage.until_s)
        if outage.is_crash:
            self._begun_s = {
                key: at_s for key, at_s in self._begun_s.items() if key[0] != outage.node
            }
        if outage.taken_over:
            self._was_taken_over = True
            self._changed_s[self.world.placed.nodes.parents[outage.node] or ""] = now_s

    def on_handled(self, now_s: float, before: NegotiatingNode, after: NegotiatingNode) -> None:
        held, was = after.negotiation, before.negotiation
        if isinstance(was, Asking) and was.waiting and not isinstance(held, Asking):
            is_early = now_s < was.answers_until_s - _EPSILON
            if self._is_sound_network and not is_early:
                self._tell(now_s, f"{after.name} was not answered by {set(was.waiting)}")
        if held is None:
            return
        begun_s = self._begun_s.get((after.name, held.id), now_s)
        if not _is_same(was, held):
            self._begun_s[after.name, held.id] = begun_s = now_s
        most_s = self.settings.hold_s
        if not isinstance(held, Answering):
            most_s += self.settings.answer_s
        if now_s > begun_s + most_s + _EPSILON and now_s >= self._stopped_until_s.get(
            after.name, 0.0
        ):
            self._tell(now_s, f"{after.name} is in {held.id} since {begun_s:.2f}")

    def on_step(self, now_s: float, step: ChangeOwner, asked_by: str, done: bool) -> None:
        if asked_by != step.source:
            self._tell(now_s, f"{asked_by} gives away what belongs to {step.source}")
        if not done:
            if not self._was_taken_over:
                self._tell(now_s, f"asked for what cannot be: {step}")
            return
        self._check_loads(now_s, step)
        self._check_rest(now_s, step)
        names = [name for portion in step.portions for name in portion.operators]
        if self.world.placed.find_misplaced(names) is not None:
            self._tell(now_s, f"an operator lacks an input after {step}")

    def _check_loads(self, now_s: float, step: ChangeOwner) -> None:
        settings = self.settings
        left = self.world.utilisation(step.source)
        if left < settings.target - _EPSILON:
            self._tell(now_s, f"{step.source} gave too much and is at {left:g}")
        consented_s = self._consented_s.get((step.target, step.negotiation))
        if consented_s is None:
            self._tell(now_s, f"{step.target} never agreed to {step}")
            return
        limit = settings.upper - settings.margin
        if settings.accept is Accept.TARGET:
            limit = settings.target
        reached = self.world.utilisation(step.target)
        was_quiet = self._changed_s.get(step.target, -1.0) <= consented_s
        if was_quiet and reached > limit + _EPSILON:
            self._tell(now_s, f"{step.target} accepted beyond its limit: {reached:g}")

    def _check_rest(self, now_s: float, step: ChangeOwner) -> None:
        rest_s = self.settings.rest_periods * self.settings.period_s
        for portion in step.portions:
            for name in portion.operators:
                moved_s, on = self._moved_s.get(name, (-1e9, ""))
                forgot = self.world.state(step.source).incarnation > 0 or self._was_taken_over
                if on == step.source and not forgot and now_s < moved_s + rest_s - _EPSILON:
                    self._tell(now_s, f"{name} moved again after {now_s - moved_s:.2f} s")
                self._moved_s[name] = now_s, step.target

    def check_end(self) -> None:
        """Looks at a world that has come to rest."""
        world = self.world
        total = sum(len(world.placed.on(node)) for node in world.placed.nodes.parents)
        if total != len(world.sizes) or world.placed.find_misplaced(world.sizes) is not None:
            self._tell(world.now_s, "an operator is lost, doubled or without its input")
        for node in world.placed.nodes.parents:
            held = world.state(node).negotiation
            # One that just began may be under way; nothing older.
            begun_s = self._begun_s.get((node, held.id), 0.0) if held else world.now_s
            most_s = self.settings.hold_s + self.settings.answer_s
            if world.now_s > begun_s + most_s + _EPSILON:
                self._tell(world.now_s, f"{node} never ended {held}")
            if world.prepared(node) and not isinstance(held, Answering):
                self._tell(world.now_s, f"{node} is still prepared for {world.prepared(node)}")

    def _tell(self, now_s: float, text: str) -> None:
        self.violations.append(f"{now_s:.3f} {text}")
