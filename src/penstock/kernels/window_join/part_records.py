"""Places and releases of a join's parts as plain values, for logs and files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from penstock.kernels.window_join.part_place import GroupRelease, PartPlace
from penstock.kernels.window_join.parts import Cohort, JoinPart
from penstock.kernels.window_join.terms import JoinOffset, SideOffset


def offset_record(offset: JoinOffset) -> dict[str, Any]:
    """How far a join has come, as plain values."""
    return asdict(offset)


def read_offset(record: dict[str, Any]) -> JoinOffset:
    """What :func:`offset_record` gave."""
    return JoinOffset(SideOffset(**record["left"]), SideOffset(**record["right"]))


def release_record(release: GroupRelease) -> dict[str, Any]:
    """A release as plain values."""
    return {
        "epoch": release.epoch,
        "source": release.source,
        "target": release.target,
        "released_s": release.released_s,
        **_cohort_record(release.cohort),
    }


def read_release(record: dict[str, Any]) -> GroupRelease:
    """What :func:`release_record` gave.

    >>> cohort = Cohort(frozenset({3}), JoinOffset(SideOffset(0, 2, 20), SideOffset(0, 1)))
    >>> release = GroupRelease(1, 1, 2, cohort, 7.5)
    >>> read_release(release_record(release)) == release
    True
    """
    return GroupRelease(
        record["epoch"],
        record["source"],
        record["target"],
        _read_cohort(record),
        record["released_s"],
    )


def place_record(place: PartPlace) -> dict[str, Any]:
    """A place as plain values."""
    return {
        "number": place.number,
        "cohorts": [_cohort_record(cohort) for cohort in place.cohorts.cohorts],
        "epochs": list(place.epochs),
        "held": [release_record(release) for release in place.held],
        "closed": place.closed,
    }


def read_place(record: dict[str, Any]) -> PartPlace:
    """What :func:`place_record` gave."""
    return PartPlace(
        record["number"],
        JoinPart(tuple(_read_cohort(cohort) for cohort in record["cohorts"])),
        tuple(record["epochs"]),
        tuple(read_release(release) for release in record["held"]),
        record["closed"],
    )


def _cohort_record(cohort: Cohort) -> dict[str, Any]:
    return {"groups": sorted(cohort.groups), "offset": offset_record(cohort.offset)}


def _read_cohort(record: dict[str, Any]) -> Cohort:
    return Cohort(frozenset(record["groups"]), read_offset(record["offset"]))
