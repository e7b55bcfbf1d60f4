"""The form of a deployment file as a JSON Schema: editors complete and check it while it is typed.

It says which keys there are and what kind of value each takes. What depends on other parts of a
file, names, columns and SQL, only reading it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from penstock.model.engines import EngineName, JoinWay
from penstock.model.sources import FileFormat

Node = dict[str, Any]
_DRAFT = "http://json-schema.org/draft-07/schema#"


def deployment_schema() -> Node:
    """The whole schema, as plain values.

    >>> sorted(deployment_schema()["properties"])[:3]
    ['balance', 'broadcast', 'devices']
    """
    return {
        "$schema": _DRAFT,
        "title": "A deployment of Penstock",
        **_object(
            {
                "streams": _named(_stream(), "Where rows come from, and streams made of others."),
                "tables": _named(_table(), "What streams are joined with."),
                "queries": _named(_query(), "What is computed all the time."),
                "nodes": _named(
                    _or_nothing(_node()),
                    "What run starts and plan plans for; a running system has its own.",
                ),
                "placement": _text("The strategy whose plan is taken, such as rod."),
                "balance": {"type": "object", "description": "How a running system is balanced."},
                "share": {
                    "enum": ["on", "off", True, False],
                    "description": "Whether queries share what runs already.",
                },
                "broadcast": _broadcast(),
                "devices": _named(_device(), "Devices that hear results and compute on their own."),
            }
        ),
        "definitions": {"name": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}},
    }


def _object(properties: Mapping[str, Node], *required: str, told: str = "") -> Node:
    """A mapping that has these keys and no others."""
    made: Node = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        made["required"] = list(required)
    return made | ({"description": told} if told else {})


def _named(value: Node, told: str) -> Node:
    """A mapping of names that people choose."""
    return {
        "type": ["object", "null"],
        "propertyNames": {"$ref": "#/definitions/name"},
        "additionalProperties": value,
        "description": told,
    }


def _text(told: str) -> Node:
    return {"type": "string", "description": told}


def _one_of(values: tuple[str, ...], told: str) -> Node:
    return {"enum": list(values), "description": told}


def _or_nothing(node: Node) -> Node:
    return {"anyOf": [node, {"type": "null"}]}


_WHOLE: Node = {"type": "integer", "minimum": 1}
_NUMBER: Node = {"type": "number"}
_FLAG: Node = {"type": "boolean"}
_TEXT_OR_NUMBER: Node = {"type": ["string", "number"]}
_DURATION: Node = {
    "type": ["string", "number"],
    "description": "A length of time, such as 500ms, 2min or 6 hours.",
}
_SCHEMA = _text("Columns: ts timestamp, home string, kwh double.")
_SQL = _text("A query in Spark's SQL over named streams.")
_FROM = _text("The stream that is read.")
_PYTHON = _text("A function on Arrow batches, module:function.")
_DATABASE = _text("A database URL; ${NAME} is taken from the environment.")
_TIMED: Mapping[str, Node] = {
    "event_time": _text("When a row happened: a column or an expression."),
    "lateness": {**_DURATION, "description": "How far behind the latest row one still counts."},
}
_KAFKA: Mapping[str, Node] = {
    "kafka": _text("Brokers, such as host:9092."),
    "topic": _text("The topic."),
    "client": _text("A file of client settings."),
}
_FORMAT = _one_of(get_args(FileFormat), "What the files are; without it their ending says so.")
_LAYOUT: Mapping[str, Node] = {
    "delimiter": _text("Between the fields of csv."),
    "header": _FLAG,
    "null": {"type": ["string", "null"], "description": "How csv writes that there is no value."},
}


def _source() -> Node:
    # The options of a generator are those of its function.
    generator: Node = {
        "type": "object",
        "properties": {"generate": _text("A generator: meters, packets, auctions …")},
        "required": ["generate"],
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
    directory = {"directory": _text("A folder of files."), "pattern": _text("Which, as *.csv.")}
    replay = {"replay": _text("A recording."), "speedup": _TEXT_OR_NUMBER}
    return {
        "anyOf": [
            generator,
            _object({**directory, "format": _FORMAT, "finished": _FLAG, **_LAYOUT}, "directory"),
            _object({**replay, "format": _FORMAT, **_LAYOUT}, "replay"),
            _object({**_KAFKA, "finished": _FLAG}, "kafka", "topic"),
        ],
        "description": "Where rows come from.",
    }


def _stream() -> Node:
    outside = {
        "source": _source(),
        "schema": _SCHEMA,
        "columns": {"type": "object", "additionalProperties": {"type": "string"}},
        "time_format": _text("How times are written in the source."),
        **_TIMED,
        "idle_timeout": _DURATION,
        "ahead": _DURATION,
        "on": _text("The node it comes in at."),
    }
    python = {"from": _FROM, "python": _PYTHON, "schema": _SCHEMA, **_TIMED}
    switch = {"type": "object", "additionalProperties": {"type": "string"}}
    return {
        "anyOf": [
            _object(outside, "source"),
            _object({"sql": _SQL, **_TIMED}, "sql"),
            _object(python, "from"),
            _object({"from": _FROM, "switch": switch}, "from", "switch"),
        ]
    }


def _table() -> Node:
    file = {"file": _text("A file, read once."), "format": _FORMAT, "schema": _SCHEMA, **_LAYOUT}
    database = {"database": _DATABASE, "table": _text("Its table."), "schema": _SCHEMA}
    return {
        "anyOf": [
            _object(file, "file", "schema"),
            _object(database, "database", "schema"),
            _object({"on": {"const": "devices"}, "schema": _SCHEMA}, "on", "schema"),
        ]
    }


def _query() -> Node:
    whole = {
        "sql": _SQL,
        "from": _FROM,
        "python": _PYTHON,
        "schema": _SCHEMA,
        **_TIMED,
        "to": _sink(),
        "max_latency": {**_DURATION, "description": "How old results may be."},
        "on": _text("The node it runs on."),
        "groups": _object({"by": _text("A column, or several."), "count": _WHOLE}, "by", "count"),
        "engine": _one_of(get_args(EngineName), "How it is run; light where it can be."),
        "join": _join(),
        "device": _object(
            {
                "cut": {"type": "integer"},
                "rate": _NUMBER,
                "tuple_bytes": _NUMBER,
                "operators": {"type": "object"},
            }
        ),
    }
    return {"anyOf": [_SQL, _object(whole)]}


def _node() -> Node:
    parent = _text("The node above it, where nodes form a tree.")
    return _object({"cores": _WHOLE, "memory": _TEXT_OR_NUMBER, "parent": parent})


def _join() -> Node:
    spread = {"spread": _TEXT_OR_NUMBER, "groups": _WHOLE}
    forms = [_one_of(get_args(JoinWay), "A way."), _object(spread, "spread")]
    return {"anyOf": forms, "description": "How streams are joined, and to how many parts."}


def _sink() -> Node:
    files = {"files": _text("A folder."), "format": _FORMAT}
    return {
        "anyOf": [
            _one_of(("console", "memory", "none"), "A word."),
            {"type": "null"},
            _object(files, "files"),
            _object({"table": _text("A table."), "database": _DATABASE}, "table", "database"),
            _object(_KAFKA, "kafka", "topic"),
        ],
        "description": "Where results go; to the terminal if nothing is said.",
    }


def _broadcast() -> Node:
    return _object(
        {
            "organisation": _text("In which order results are on the air."),
            "bandwidth": _NUMBER,
            "cycle": _NUMBER,
            "raw_cut": _FLAG,
            "power_up": _NUMBER,
            "open": _FLAG,
            "listeners": {"type": "integer"},
            "recut": _FLAG,
        },
        "organisation",
        "bandwidth",
        told="The channel that devices listen to.",
    )


def _device() -> Node:
    return _object(
        {
            "speed": _NUMBER,
            "processing_power": _NUMBER,
            "receiving_power": _NUMBER,
            "battery": _NUMBER,
            "queries": {"type": ["array", "string"], "items": {"type": "string"}},
        },
        "speed",
        "processing_power",
        "receiving_power",
        "queries",
    )
