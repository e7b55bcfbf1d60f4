"""The server's part of a query at another cut, as a submission of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.plan_codec import decode_plan, encode_plan
from penstock.control.records import Submission
from penstock.control.system import assemble
from penstock.device.chain import chain_of
from penstock.device.segments import Segment, boundary_us, can_switch
from penstock.device.splitting import served
from penstock.errors import InputError
from penstock.lang.deployment import deployment_yaml, parse_deployment
from penstock.model.network import Deployment

from device.air import deployment

pytestmark = pytest.mark.core


def submissions(folder: Path, *segments: Segment) -> list[Submission]:
    text = deployment_yaml(deployment(folder, 1))
    whole = Submission(1, "meters", "yaml", text, str(folder))
    more = (
        Submission(at, f"meters.{at}", "segment", segment.to_text(), ".")
        for at, segment in enumerate(segments, 2)
    )
    return [whole, *more]


def test_a_segment_reads_the_stream_that_runs(tmp_path: Path) -> None:
    asked = [Segment("meters", "usage", 3), Segment("meters", "usage", 0)]
    system = assemble(submissions(tmp_path, *asked))
    later = {unit.gives: unit.reads for unit in system.units.values() if unit.submission > 1}
    assert later == {"usage_aggregate_cut2": ("readings",), "readings_cut3": ("readings",)}


def test_a_segment_of_what_does_not_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        assemble(submissions(tmp_path, Segment("metres", "usage", 3)))
    assert str(error.value) == "no deployment metres with devices is running"


def test_a_cut_deployment_is_recorded_whole(tmp_path: Path) -> None:
    cut = served(deployment(tmp_path, 1))
    assert decode_plan(encode_plan(cut), Deployment) == cut


def test_windows_made_on_devices_are_whole_a_window_later(tmp_path: Path) -> None:
    chain, second_us = chain_of(deployment(tmp_path, 1).network, "usage"), 1_000_000
    moment = "1970-01-02T00:00:00.000000Z"
    assert boundary_us(chain, 1, 2, moment) == 86_400 * second_us
    assert boundary_us(chain, 1, 3, moment) == 86_400 * second_us
    assert boundary_us(chain, 3, 1, moment) == 90_000 * second_us


def test_a_chain_that_loses_its_time_keeps_its_cut(tmp_path: Path) -> None:
    text = deployment_yaml(deployment(tmp_path, 1)).replace(
        "SELECT ts, home, kwh FROM", "SELECT home, kwh FROM"
    )
    chain = chain_of(parse_deployment(text, "meters.yaml", tmp_path).network, "peaks")
    assert can_switch(chain, 0, 1) and not can_switch(chain, 1, 2)
