"""Who has claimed a member, and in which log: the way from an owner to the one before it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from penstock.channels.durable import create_once, numbered, read_record, sealed_record
from penstock.model.ids import PartId
from penstock.spark.bundles.bundle_log import BundleLog, FormerLog, Handed
from penstock.spark.checkpoints import replaced

_CLAIM = "claim-"


@dataclass(frozen=True)
class Claim:
    """That an owner has come, by its epoch, and in which log its rounds are."""

    epoch: int
    log: str


@dataclass
class FormerLogs:
    """The logs of all nodes, as far as they were looked at."""

    folder: Path
    _logs: dict[str, FormerLog] = field(default_factory=dict)
    _looking: Lock = field(default_factory=Lock)

    def look_ahead(self, claim: Claim, member: PartId) -> Handed | None:
        """What the owner of a member would hand over by now, if it is in its log.

        Looking again costs what was added since.
        """
        with self._looking:
            known = self._of(claim.log).look()
            found = known.find(member, claim.epoch)
            return None if found is None else known.hand_over(found, 0)

    def fence(self, claim: Claim, member: PartId) -> Handed | None:
        """Ends a member's rounds in the log of a former owner."""
        with self._looking:
            return self._of(claim.log).fence(member, claim.epoch)

    def forget(self) -> None:
        """Lets go of what was read; it is read again when it is needed."""
        with self._looking:
            self._logs.clear()

    def _of(self, name: str) -> FormerLog:
        if name not in self._logs:
            self._logs[name] = FormerLog(BundleLog(self.folder / name))
        return self._logs[name]


@dataclass(frozen=True)
class Membership:
    """The claims on one member, a numbered file each, in the order in which owners came."""

    name: PartId
    folder: Path
    logs: FormerLogs

    def claim(self, epoch: int, log: str) -> int:
        """Makes the owner with this epoch the newest; the number of its claim.

        Refused if one with a higher epoch has come.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        text = sealed_record({"epoch": epoch, "log": log})
        while True:
            self._check_newest(epoch)
            number = max(self._files(), default=0) + 1
            if create_once(self.folder / f"{_CLAIM}{number}", text):
                # Again: one that came meanwhile may have looked before this claim was there.
                self._check_newest(epoch)
                return number

    def _check_newest(self, epoch: int) -> None:
        newest = max((claim.epoch for claim in self.claims().values()), default=0)
        if newest > epoch:
            raise replaced(self.name, newest, epoch)

    def _files(self) -> dict[int, Path]:
        return numbered(self.folder, _CLAIM)

    def claims(self) -> dict[int, Claim]:
        """All claims that are kept, by number."""
        read = ((number, read_record(path)) for number, path in self._files().items())
        return {number: Claim(**record) for number, record in read if record is not None}

    def take_from_former(self, number: int) -> Handed | None:
        """Ends what former owners did, the newest first; what the last one that began left.

        None if nobody has begun.
        """
        claims = self.claims()
        for former in sorted((other for other in claims if other < number), reverse=True):
            handed = self.logs.fence(claims[former], self.name)
            if handed is not None:
                return handed
        return None

    def look_ahead(self) -> Handed | None:
        """What the present owner would hand over by now; None if nobody has begun."""
        claims = self.claims()
        return self.logs.look_ahead(claims[max(claims)], self.name) if claims else None

    def forget_former(self, log: str) -> None:
        """Removes the claims before the last one of this log; once its first round is committed."""
        claims = self.claims()
        mine = max((number for number, claim in claims.items() if claim.log == log), default=0)
        for number, path in self._files().items():
            if number < mine:
                path.unlink(missing_ok=True)

    def is_over(self, claim: Claim) -> bool:
        """Whether nobody needs what this owner left: a later one has begun, or none ever will."""
        return claim not in self.claims().values()

    def give_up(self) -> None:
        """Ends it all: nobody will go on with the member."""
        shutil.rmtree(self.folder, ignore_errors=True)
