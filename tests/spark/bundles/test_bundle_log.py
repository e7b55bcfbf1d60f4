"""Where members stand, as logs tell it: read back, and from logs of before joins were light."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from penstock.spark.bundles.bundle_log import InputPlace, MemberPlace

pytestmark = pytest.mark.core


def test_a_place_reads_back() -> None:
    inputs = (InputPlace(7, 3, 5_000, False), InputPlace(2, 2, None, True, before=True))
    place = MemberPlace(inputs, (1, 4), 12)
    assert MemberPlace.from_record(asdict(place)) == place


def test_a_log_of_before_joins_were_light_is_read() -> None:
    record = {
        "next": 7,
        "watermark_us": 5_000,
        "ended": False,
        "members": [1, 4],
        "rows": 12,
        "before": True,
    }
    place = InputPlace(7, 7, 5_000, False, before=True)
    assert MemberPlace.from_record(record) == MemberPlace((place,), (1, 4), 12)
