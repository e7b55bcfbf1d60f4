"""A network as plain values, for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from penstock.lang.explain.words import details_words
from penstock.model.canonical import Signatures, signatures
from penstock.model.estimates import OperatorEstimate
from penstock.model.network import Network, Query
from penstock.model.operators import Operator
from penstock.model.schema import Shape
from penstock.model.sources import Sink, Source, Stream

Record = dict[str, object]
_SUFFIXES = ("Source", "Sink")


def explain_dict(network: Network, costs: Mapping[str, OperatorEstimate] | None = None) -> Record:
    """The network as dictionaries, lists, texts and numbers only; passwords are left out.

    ``streams``, ``operators`` (each after all it reads) and ``queries`` are lists. An operator has
    an ``estimate`` if ``costs`` has one under its name, else null. Each has a ``signature``: what
    gives the same rows at the same event times has the same one.
    """
    estimates = costs or {}
    signed = signatures(network)
    return {
        "streams": [_stream(stream, signed) for stream in network.streams],
        "operators": [
            _operator(operator, estimates.get(operator.name), signed)
            for operator in network.operators
        ],
        "queries": [_query(query, signed) for query in network.queries],
    }


def _stream(stream: Stream, signed: Signatures) -> Record:
    return {
        "name": stream.name,
        "signature": signed.streams[stream.name],
        "source": _end(stream.source),
        **_shape(stream.shape),
        "lateness_us": stream.lateness_us,
        "idle_timeout_us": stream.idle_timeout_us,
        "ahead_us": stream.ahead_us,
        "on": stream.on,
    }


def _operator(operator: Operator, estimate: OperatorEstimate | None, signed: Signatures) -> Record:
    return {
        "name": operator.name,
        "signature": signed.operators[operator.name],
        "kind": operator.kind,
        "details": details_words(operator),
        "inputs": [input.stream for input in operator.inputs],
        "outputs": [
            {"name": name, "signature": signed.streams[name], **_shape(shape)}
            for name, shape in operator.outputs.items()
        ],
        "stateful": operator.stateful,
        "opaque": operator.opaque,
        "movable": operator.movable,
        "delay_us": operator.delay_us,
        "estimate": asdict(estimate) if estimate else None,
    }


def _query(query: Query, signed: Signatures) -> Record:
    return {
        "name": query.name,
        "signature": signed.queries[query.name],
        "stream": query.stream,
        "sink": _end(query.sink) if query.sink else None,
        "max_latency_us": query.max_latency_us,
        "on": query.on,
        "groups": asdict(query.groups) if query.groups else None,
        "engine": query.engine,
        "join": query.join,
        "spread": asdict(query.spread) if query.spread else None,
        "sql": query.text,
    }


def _shape(shape: Shape) -> Record:
    return {
        "schema": [{"name": field.name, "type": str(field.type)} for field in shape.schema],
        "event_time": shape.event_time,
        "watermarked": bool(shape.times) and shape.watermarked,
    }


def _end(end: Source | Sink) -> Record:
    """A source or sink: its kind, and its fields under their own names."""
    kind = type(end).__name__
    for suffix in _SUFFIXES:
        kind = kind.removesuffix(suffix)
    return {"kind": kind.lower()} | {name: _plain(value) for name, value in vars(end).items()}


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return vars(value) if hasattr(value, "__dict__") else value
