"""A network as a Mermaid flowchart."""

from __future__ import annotations

from penstock.lang.explain.words import details_words, query_words, source_words
from penstock.model.network import Network, Query
from penstock.model.operators import Operator

# Mermaid ends a label at a quote and reads # as the start of an entity.
_ESCAPES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
_LONGEST_LINE = 60


def explain_mermaid(network: Network) -> str:
    """The flow from streams through operators to queries; the same network gives the same text."""
    ids = {stream.name: f"s{at}" for at, stream in enumerate(network.streams)}
    lines = ["flowchart LR"]
    for stream in network.streams:
        label = _label(stream.name, source_words(stream.source))
        lines.append(f"  {ids[stream.name]}[({label})]")
    for at, operator in enumerate(network.operators):
        lines += _operator_lines(operator, f"o{at}", ids, network)
        ids |= dict.fromkeys(operator.outputs, f"o{at}")
    for at, query in enumerate(network.queries):
        lines += _query_lines(query, f"q{at}", ids, network)
    return "\n".join(lines) + "\n"


def _operator_lines(
    operator: Operator, id: str, ids: dict[str, str], network: Network
) -> list[str]:
    label = _label(operator.name, operator.kind, details_words(operator))
    box = f"[[{label}]]" if operator.stateful else f"[{label}]"
    arrows = [_arrow(input.stream, id, ids, network) for input in operator.inputs]
    return [f"  {id}{box}", *arrows]


def _query_lines(query: Query, id: str, ids: dict[str, str], network: Network) -> list[str]:
    label = _label(query.name, query_words(query, network))
    return [f"  {id}([{label}])", _arrow(query.stream, id, ids, network)]


def _arrow(stream: str, reader: str, ids: dict[str, str], network: Network) -> str:
    producer = network.producers.get(stream)
    several = producer is not None and len(producer.outputs) > 1
    note = f'|"{_escaped(stream)}"|' if several else ""
    return f"  {ids[stream]} -->{note} {reader}"


def _label(*lines: str) -> str:
    return '"' + "<br/>".join(_escaped(_short(line)) for line in lines if line) + '"'


def _short(line: str) -> str:
    flat = " ".join(line.split())
    return flat if len(flat) <= _LONGEST_LINE else f"{flat[: _LONGEST_LINE - 1]}…"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)
