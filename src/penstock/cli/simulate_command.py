"""``penstock simulate``: a deployment, an abstract network or a tree in simulated time."""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.app.words import count, span
from penstock.errors import UsageError, listed

if TYPE_CHECKING:
    from penstock.app.simulating import Simulated
    from penstock.balance.plan import PlannedMove
    from penstock.model.tree_network import TreeNetwork
    from penstock.sim.balancing import BalancedSystem

SIMULATE_EXAMPLES = """\
[bold]Examples[/bold]

penstock simulate network.yaml --for 5min                      a minute is the default

penstock simulate network.yaml --arrivals alternating --balance correlation

penstock simulate ami.yaml --nodes 3 --scale 50 --figure load.svg

penstock simulate tree.yaml --balance hierarchy --growth 1     a tree of nodes that negotiate

penstock simulate network.yaml --trace I1=times.txt --json     recorded arrivals; for scripts
"""


def simulate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A deployment file, an abstract network or a tree of nodes.",
            show_default=False,
        ),
    ],
    for_: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long, in simulated time.")
    ] = "1min",
    arrivals: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="poisson, periodic, alternating, on-off or self-similar.",
        ),
    ] = "poisson",
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=N", help="Tuples a second of an input.", show_default=False),
    ] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INPUT=PATH",
            help="Arrivals of an input at recorded times, a number of seconds a line.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[float, typer.Option(min=0.0, help="Multiply all rates by this.")] = 1.0,
    placement: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where operators start.", show_default="rod"),
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="How load is balanced.", show_default="off"),
    ] = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Say what would be moved; move nothing.")
    ] = False,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, help="Simulate so many equal nodes instead of those in the file."),
    ] = None,
    discipline: Annotated[str, typer.Option(metavar="NAME", help="fcfs or round-robin.")] = "fcfs",
    service: Annotated[
        str, typer.Option(metavar="NAME", help="constant or exponential processing times.")
    ] = "constant",
    selectivity: Annotated[
        str, typer.Option(metavar="NAME", help="random, or expected: exact on average.")
    ] = "random",
    delay: Annotated[str, typer.Option(metavar="TIME", help="Network delay between nodes.")] = "0s",
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another run.")] = 0,
    growth: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="PERCENT",
            help="In a tree of nodes, let operators grow by so much a step, and later shrink.",
        ),
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Draw load and latency.", show_default=False),
    ] = None,
) -> None:
    """Run a plan in simulated time: load of the nodes, latency of results, what is moved."""
    from penstock.app.simulating import SimulationRequest, simulate_file
    from penstock.lang.abstract import tree_in
    from penstock.lang.files import text_of
    from penstock.sim.physics import Physics

    tree = tree_in(text_of(file), str(file))
    if tree is not None:
        _simulate_tree(tree, balance or "off", _seconds("--for", for_), growth, seed, json, figure)
        return
    if growth:
        raise UsageError(
            f"--growth {growth:g} is for trees of nodes", hint="Use --rate or --scale here."
        )
    request = SimulationRequest(
        file,
        _seconds("--for", for_),
        nodes,
        placement,
        balance,
        suggest,
        arrivals,
        {name: _number(name, value) for name, value in _pairs("--rate", rate)},
        {name: Path(value) for name, value in _pairs("--trace", trace)},
        scale,
        Physics(selectivity, service, discipline, delay_s=_seconds("--delay", delay)),
        seed,
    )
    found = simulate_file(request, _progress)
    if figure is not None:
        _draw(found, figure)
    if json:
        typer.echo(json_text.dumps(simulation_record(found), indent=2))
    else:
        typer.echo("\n".join(simulation_lines(found)))


def _draw(found: Simulated, path: Path) -> None:
    from penstock.cli.simulation_figure import draw_simulation
    from penstock.cli.tree_simulating import draw_tree
    from penstock.sim.negotiating import NegotiatedSystem

    if isinstance(found.system, NegotiatedSystem) and found.without is not None:
        draw_tree(found.subject.policy, found.system.figures(), found.without, path)
    else:
        draw_simulation(found, path)


def _simulate_tree(
    tree: TreeNetwork,
    policy: str,
    length_s: float,
    growth: float,
    seed: int,
    json: bool,
    figure: Path | None,
) -> None:
    from penstock.cli.tree_simulating import draw_tree, simulate_tree, tree_lines, tree_record

    found = simulate_tree(tree, policy, length_s, growth, seed)
    if figure is not None:
        draw_tree(policy, found.found, found.without, figure)
    typer.echo(
        json_text.dumps(tree_record(found), indent=2) if json else "\n".join(tree_lines(found))
    )


def _seconds(option: str, written: str) -> float:
    from penstock.errors import InputError
    from penstock.model.durations import duration_us

    try:
        return duration_us(written) / 1e6
    except InputError as error:
        raise UsageError(f"{option} {written}: {error.what}", hint=error.hint) from None


def _pairs(option: str, written: list[str] | None) -> list[tuple[str, str]]:
    found = []
    for text in written or ():
        name, is_pair, value = text.partition("=")
        if not is_pair or not name or not value:
            raise UsageError(f"{option} {text} names no input", hint=f"Write {option} I1=…")
        found.append((name, value))
    return found


def _number(name: str, written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise UsageError(
            f"--rate {name}={written} is not a number", hint="Give tuples a second."
        ) from None


def _progress(share: float) -> None:
    if sys.stderr.isatty():
        text = f"{share:.0%} simulated" if share < 1 else ""
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def simulation_record(found: Simulated) -> dict[str, object]:
    """The stable form that ``--json`` prints; numbers that are not known are null."""
    simulation, system = found.system.simulation, found.system
    latencies = simulation.latencies()
    network = simulation.network
    where = simulation.assignment.tolist()
    return {
        "simulated_s": found.request.length_s,
        "seconds": found.took_s,
        "events": simulation.events,
        "placement": found.subject.placement,
        "policy": found.subject.policy,
        "results": latencies.count,
        "latency_s": {
            "mean": known(latencies.mean_s),
            "deviation": known(latencies.deviation_s),
            "p50": known(latencies.percentile_s(50)),
            "p99": known(latencies.percentile_s(99)),
            "longest": known(latencies.longest_s),
            "ratio": known(latencies.ratio),
        },
        "sinks": {
            name: {"results": results, "mean_latency_s": known(mean_s)}
            for name, (results, mean_s) in simulation.sink_latencies().items()
        },
        "nodes": {
            node.name: {"utilisation": mean, "highest": highest}
            for node, (mean, highest) in zip(network.nodes, _loads(found), strict=True)
        },
        "waiting": simulation.waiting,
        "assignment": {
            operator.name: network.nodes[node].name
            for operator, node in zip(network.operators, where, strict=True)
        },
        "fragments": _fragment_records(found),
        "moved_load": system.moved_load,
        **_moves_record(found),
        "notes": list(found.subject.notes),
    }


def known(value: float) -> float | None:
    """JSON has no NaN.

    >>> known(float("nan")) is None, known(0.5)
    (True, 0.5)
    """
    return None if value != value else value


def _moves_record(found: Simulated) -> dict[str, object]:
    """What was moved, by plans or by agreements of neighbours; of a tree its load over time too."""
    from penstock.cli.tree_simulating import figures_record, transfer_record
    from penstock.sim.negotiating import NegotiatedSystem

    system = found.system
    if not isinstance(system, NegotiatedSystem):
        return {
            "moves": [_move_record(system, move) for plan in system.plans for move in plan.moves]
        }
    assert found.without is not None
    figures = figures_record(system.figures(), found.without, found.request.length_s)
    return {"transfers": [transfer_record(made) for made in system.transfers], **figures}


def _move_record(system: BalancedSystem, move: PlannedMove) -> dict[str, object]:
    nodes = system.simulation.network.nodes
    return {
        "operator": system.units[move.operator],
        "from": nodes[move.source].name,
        "to": nodes[move.target].name,
        "load": move.load,
        "score": move.score,
        "correlation_with_old": move.source_correlation,
        "correlation_with_new": move.target_correlation,
        "old_node": [move.source_before, move.source_after],
        "new_node": [move.target_before, move.target_after],
    }


def _fragment_records(found: Simulated) -> dict[str, object]:
    """How the fragments of a deployment work; an abstract network has none."""
    work, operators = found.subject.work, found.system.simulation.network.operators
    if work is None:
        return {}
    return {
        operator.name: {
            "kind": work[operator.name].kind,
            "round_s": work[operator.name].round_s,
            "gives_every_s": work[operator.name].gives_every_s,
            "keeps_s": work[operator.name].keeps_s,
            "bound": operator.is_bound,
        }
        for operator in operators
    }


def _loads(found: Simulated) -> list[tuple[float, float]]:
    """The mean and the highest second of every node."""
    line = found.system.timeline
    columns = [line.column(name) for name in line.columns if name.startswith("node ")]
    return [
        (float(column.mean()), float(column.max())) if column.size else (0.0, 0.0)
        for column in columns
    ]


def simulation_lines(found: Simulated) -> list[str]:
    """The simulation as people read it."""
    simulation = found.system.simulation
    network, latencies = simulation.network, simulation.latencies()
    per_s = simulation.events / found.took_s if found.took_s else 0.0
    is_batched = found.subject.work is not None
    what, waits = ("fragments", "rows") if is_batched else ("operators", "tuples")
    where = "a tree of " if found.subject.tree is not None else ""
    results = f"{count(latencies.count)}{' batches' if is_batched else ''}"
    lines = [
        f"{len(network.operators)} {what} on {where}{len(network.nodes)} nodes, placement "
        f"{found.subject.placement}, balancing {found.subject.policy}",
        f"{span(found.request.length_s)} simulated in {span(found.took_s)}: "
        f"{count(simulation.events)} events, {per_s / 1e6:.1f} million a second",
        "",
        f"results   {results}, {count(simulation.waiting)} {waits} still under way",
        f"latency   mean {_ms(latencies.mean_s)}   p50 {_ms(latencies.percentile_s(50))}   "
        f"p99 {_ms(latencies.percentile_s(99))}   longest {_ms(latencies.longest_s)}   "
        f"{latencies.ratio:.2f} times the processing time",
        "",
        *_node_lines(found),
        *_bound_lines(found),
    ]
    return [*lines, *_move_lines(found), *(f"note: {note}" for note in found.subject.notes)]


def _ms(seconds: float) -> str:
    if seconds != seconds:
        return "none"
    return f"{1_000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _node_lines(found: Simulated) -> list[str]:
    names = [node.name for node in found.system.simulation.network.nodes]
    width = max(4, *map(len, names))
    lines = [f"{'node':{width}}  used   highest"]
    for name, (mean, highest) in zip(names, _loads(found), strict=True):
        lines.append(f"{name:{width}}  {mean:4.0%}   {highest:7.0%}")
    return lines


def _bound_lines(found: Simulated) -> list[str]:
    """Which fragments no policy moves, where one could."""
    names = [
        operator.name for operator in found.system.simulation.network.operators if operator.is_bound
    ]
    if found.subject.policy == "off" or not names:
        return []
    return ["", f"bound to their nodes: {listed(names)}"]


def _move_lines(found: Simulated) -> list[str]:
    from penstock.cli.tree_simulating import figures_lines, transfer_lines
    from penstock.sim.negotiating import NegotiatedSystem

    system = found.system
    if isinstance(system, NegotiatedSystem):
        assert found.without is not None
        figures, length_s = system.figures(), found.request.length_s
        lines = figures_lines(found.subject.policy, figures, found.without, length_s)
        return ["", *lines, *transfer_lines(system.transfers)]
    moves = [move for plan in system.plans for move in plan.moves]
    if not moves:
        return []
    verb = "would move" if found.request.suggest else "moved"
    load = sum(move.load for move in moves)
    head = f"{verb} {len(moves)} times, a load of {load:.2f} in all; the last:"
    return ["", head, *(f"  {_move_text(system, move)}" for move in moves[-5:])]


def _move_text(system: BalancedSystem, move: PlannedMove) -> str:
    from penstock.balance.moves import reason_text

    nodes = [node.name for node in system.simulation.network.nodes]
    way = f"{nodes[move.source]} → {nodes[move.target]}"
    return f"{system.units[move.operator]} {way}: {reason_text(move, nodes)}"
