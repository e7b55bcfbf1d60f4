"""Examples of the commands of a running system, each of its own command."""

from __future__ import annotations


def _examples(*lines: str) -> str:
    return "\n\n".join(["[bold]Examples[/bold]", *lines]) + "\n"


SYSTEM_EXAMPLES = {
    "up": _examples(
        "penstock up --nodes 3                 a controller and three nodes, in the background",
        "penstock up --nodes 4                 one more, while the others go on",
        "penstock up --on spark://big:7077     nodes on a cluster that is there",
    ),
    "dashboard": _examples(
        "penstock dashboard                    a link, good once and for a minute",
        "penstock dashboard --open             in the browser of this machine",
    ),
    "submit": _examples(
        "penstock submit ami.yaml              a deployment file",
        "penstock submit top.sql --max-latency 3s    one query over the streams that run already",
        "penstock submit ami.yaml --replace --wait   a new version; come back once it runs",
        "echo 'SELECT * FROM peaks' | penstock submit - --name all",
    ),
    "ls": _examples(
        "penstock ls                           what was submitted",
        "penstock ls --json | jq '.[].name'",
    ),
    "status": _examples(
        "penstock status                       every fragment, and the latest moves",
        "penstock status --watch               again every second",
        "penstock status --operators           what operators cost",
    ),
    "nodes": _examples(
        "penstock nodes                        what they use and run",
        "penstock nodes --context big          those of a system on another machine",
    ),
    "move": _examples(
        "penstock move heavy_homes b           while it runs: nothing lost, nothing twice",
        "penstock explain move 3               why another one was moved",
    ),
    "drop": _examples(
        "penstock drop ami                     asks first",
        "penstock drop ami --yes               for scripts",
        "penstock drop ami --keep-data         its state and results are put aside",
    ),
    "down": _examples(
        "penstock down                         everything stops; penstock up goes on from there",
    ),
}
