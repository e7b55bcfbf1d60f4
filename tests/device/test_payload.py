"""What a result takes on the air, and what planning says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.device.chain import chain_of
from penstock.device.measuring import measured_problem
from penstock.device.payload import AirKey, PayloadSpan, envelope_bytes, pack
from penstock.device.problem import problem_of
from penstock.feeds.arrow import arrow_schema
from penstock.feeds.generators import generator
from penstock.model.devices import DeviceProfile
from penstock.model.schema import Schema
from penstock.power.air.cycle import AirResult

from device.air import deployment

pytestmark = pytest.mark.core

KWH = Schema.parse("ts timestamp, home string, kwh double")


def sent(rows: pa.Table, key: AirKey) -> int:
    place = PayloadSpan(70, (rows.num_rows,), 1_767_571_200_000_000, 1_767_571_200_000_000)
    return AirResult(1, 1, key.lock(pack(rows, place), 1, 1)).size


def readings(count: int) -> pa.Table:
    rows = generator("meters", {"homes": 40, "days": 30}).read(0, count)
    return rows.select(list(KWH.names)).cast(arrow_schema(KWH))


@pytest.mark.parametrize("count", [1, 22, 1_000])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_result_is_as_large_as_it_is_planned(count: int, is_open: bool) -> None:
    rows = readings(count)
    planned = 70 + envelope_bytes(KWH, is_open) + rows.nbytes
    assert sent(rows, AirKey(b"" if is_open else b"k" * 32)) == pytest.approx(planned, rel=0.05)


def test_rows_that_come_in_pieces_take_no_more() -> None:
    rows = readings(60)
    pieces = pa.concat_tables([rows.slice(0, 0), rows.slice(0, 20), rows.slice(20)])
    assert sent(pieces, AirKey()) == sent(rows, AirKey())


def test_planning_counts_what_is_around_rows(tmp_path: Path) -> None:
    found = measured_problem(deployment(tmp_path), {}).broadcast.descriptor_bytes
    assert found > 70 + 400


def test_devices_of_the_same_name_are_two_listeners(tmp_path: Path) -> None:
    made = deployment(tmp_path)
    assert made.devices is not None
    chains = {name: chain_of(made.network, name) for name in ("usage", "peaks")}
    anna = DeviceProfile("anna", 1e9, 0.5, 1.0)
    heard = {"usage": [anna, anna, replace(anna, receiving_w=3.0)], "peaks": [anna]}
    problem = problem_of(made.devices, chains, {}, heard)
    (usage, peaks) = problem.queries
    assert sum(device.receiving_w for device in problem.listeners(usage)) == 5.0
    assert len(problem.listeners(peaks)) == 1
