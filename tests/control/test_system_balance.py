"""How a system is balanced: what files say holds until somebody commands something else."""

from __future__ import annotations

from pathlib import Path

from control.asking import Api, served
from control.made_up import AMI
from penstock.control.balancing import LiveBalancing
from penstock.errors import UnreachableError

ONE_WAY = AMI + "balance: {policy: one-way, every: 20s}\n"
OTHER = ONE_WAY.replace("peaks", "lows").replace("one-way", "global")


def submit(api: Api, name: str, text: str) -> dict[str, object]:
    body = {"name": name, "kind": "yaml", "text": text}
    answer = api.ask("POST", "/api/queries", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, object] = answer.json()["balance"]
    return found


def now(api: Api) -> tuple[object, ...]:
    said = api.ask("GET", "/api/balance").json()
    assert api.ask("GET", "/api/system").json()["balance"] == said
    return said["policy"], said["settings"]["every"], said["set_by"], said["submission"]


def told(api: Api) -> list[str]:
    events = api.ask("GET", "/api/events").json()
    return [f"{event['subject']} {event['text']}" for event in events if event["kind"] == "balance"]


def command(api: Api, policy: str, **settings: object) -> dict[str, object]:
    body = {"policy": policy, "settings": settings}
    found: dict[str, object] = api.ask("PUT", "/api/balance", json=body).json()
    return found


def test_nothing_is_balanced_that_nobody_wants_balanced(tmp_path: Path) -> None:
    with served(tmp_path) as api:
        assert now(api) == ("off", "10s", "nobody", None)
        assert submit(api, "ami", AMI) is None
        assert now(api) == ("off", "10s", "nobody", None)
        assert LiveBalancing(api.catalog, api.controller).settings().policy == "off"


def test_files_say_so_one_after_the_other(tmp_path: Path) -> None:
    with served(tmp_path) as api:
        said = submit(api, "ami", ONE_WAY)
        assert said["text"] == "one-way, every 20s"
        assert now(api) == ("one-way", "20s", "file", "ami")
        submit(api, "more", OTHER)
        assert now(api) == ("global", "20s", "file", "more")
        api.ask("DELETE", "/api/queries/more")
        assert now(api) == ("global", "20s", "file", "more"), "it is the system's now"
        assert told(api) == [
            "one-way by ami: one-way, every 20s",
            "global by more: global, every 20s",
        ]


def test_a_command_holds_whatever_files_say(tmp_path: Path) -> None:
    with served(tmp_path) as api:
        submit(api, "ami", ONE_WAY)
        answer = command(api, "correlation", every="5s", patience=3)
        assert answer["text"] == "correlation, every 5s, patience 3"
        assert now(api) == ("correlation", "5s", "command", None)
        said = submit(api, "more", OTHER)
        assert (said["policy"], said["set_by"]) == ("correlation", "command")
        assert now(api) == ("correlation", "5s", "command", None)
        command(api, "off")
        assert now(api) == ("off", "10s", "command", None), "nothing is left of the one before"
        assert told(api)[1:] == [
            "correlation by command: correlation, every 5s, patience 3",
            "global more says global, every 20s; it stays as commanded",
            "off by command: off",
        ]


def test_the_balancer_goes_by_it(tmp_path: Path) -> None:
    with served(tmp_path) as api:
        balancer = LiveBalancing(api.catalog, api.controller)
        for policy in ("one-way", "global", "off"):
            command(api, policy, most_load=0.5)
            settings = balancer.settings()
            assert (settings.policy, settings.guards.most_load) == (policy, 0.5)


def test_what_makes_no_sense_changes_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as api:
        command(api, "one-way")
        for body, wrong in (
            ({"policy": "rod"}, "no balancing policy rod"),
            ({"policy": "off", "settings": {"evry": 1}}, "Did you mean every?"),
            ({"policy": "off", "settings": {"policy": "off"}}, "Name it once"),
            ({"policy": "off", "settings": {"every": [1]}}, "was given something else"),
            ({"settings": {}}, "policy: Field required"),
        ):
            answer = api.ask("PUT", "/api/balance", json=body)
            assert 400 <= answer.status_code < 500
            assert wrong in answer.json()["text"]
        assert now(api) == ("one-way", "10s", "command", None)
        assert len(told(api)) == 1


def test_a_submission_that_is_not_recorded_says_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as api:

        def fail() -> None:
            raise UnreachableError("the catalog is away")

        api.catalog.before["add"] = fail
        body = {"name": "ami", "kind": "yaml", "text": ONE_WAY}
        assert api.ask("POST", "/api/queries", json=body).status_code == 503
        assert now(api) == ("off", "10s", "nobody", None)
