"""The examples for Prometheus and Grafana: they can be read, and name only what is exported."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from control.asking import Api, served
from control.made_up import AMI
from penstock.model.measurements import NodeSample
from web.simulated import measured

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "monitoring"
NAME = re.compile(r"\bpenstock_\w+")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[str]]:
    """Every name that a system with all kinds of measurements exports."""
    with served(tmp_path_factory.mktemp("monitoring")) as api:
        text = AMI.replace("> 3", "> 3\n  late: {sql: SELECT home FROM peaks, max_latency: 5s}")
        body = {"name": "ami", "kind": "yaml", "text": text}
        assert api.ask("POST", "/api/queries", json=body).status_code == 201
        for unit in api.catalog.units():
            api.catalog.assign(unit, "a")
            api.catalog.report(unit.name, 1, "running")
        names = [unit.name for unit in api.catalog.units() if unit.kind == "fragment"]
        now_s = time.time()
        fragments = {name: measured(name, now_s) for name in names}
        api.catalog.sample("a", NodeSample(now_s, 1.0, 0.5, 1 << 29, fragments=fragments))
        _set_aside(api)
        families = text_string_to_metric_families(api.ask("GET", "/metrics").text)
        yield {sample.name for family in families for sample in family.samples}


def _set_aside(api: Api) -> None:
    folder = api.home.state / "dead_letters" / "readings"
    folder.mkdir(parents=True)
    (folder / "0.late-1.jsonl").write_text('{"reason": "late", "row": {}}\n')


def named(text: str) -> set[str]:
    return set(NAME.findall(text))


def yaml(name: str) -> Any:
    return YAML(typ="safe").load((FILES / name).read_text())


def test_every_name_is_exported(exported: set[str]) -> None:
    written = [(FILES / name).read_text() for name in ("alerts.yml", "grafana.json")]
    page = (ROOT / "docs" / "monitoring.md").read_text()
    for text in (*written, page):
        assert len(named(text)) > 5
        assert named(text) <= exported


def test_the_scrape_file() -> None:
    (job,) = yaml("prometheus.yml")["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["authorization"]["type"] == "Bearer"
    assert job["authorization"]["credentials_file"].endswith(".penstock/system/token")
    assert yaml("prometheus.yml")["rule_files"] == ["alerts.yml"]


def test_every_alert_says_what_to_do() -> None:
    (group,) = yaml("alerts.yml")["groups"]
    for rule in group["rules"]:
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert len(rule["annotations"]["summary"]) > 20
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])


def test_the_dashboard_file() -> None:
    board = json.loads((FILES / "grafana.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["targets"] and all(target["expr"] for target in panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
