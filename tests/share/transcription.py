"""The rules of admission as they are stated, without thought of speed."""

from __future__ import annotations

from typing import Any


def admit(case: dict[str, Any]) -> dict[str, Any]:
    """The decision on a case given as plain dictionaries."""
    graphs = {name: judged(case, graph) for name, graph in case["graphs"].items()}
    fit = sorted((graph["phi"], name) for name, graph in graphs.items() if graph["ok"])
    return {"graphs": graphs, "choice": fit[0][1] if fit else None}


def judged(case: dict[str, Any], graph: dict[str, str]) -> dict[str, Any]:
    operators = case["request"]["operators"]
    streams = [(one, name) for name, operator in operators.items() for one in operator["inputs"]]
    crossing = [(one, other) for one, other in streams if graph[one] != graph[other]]

    def p(node: str) -> float:
        new = [operators[name]["need"] for name in operators if graph[name] == node]
        return float(case["nodes"][node]["load"] + sum(new))

    def link(one: str, other: str) -> str | None:
        names = (f"{graph[one]}-{graph[other]}", f"{graph[other]}-{graph[one]}")
        return next((name for name in names if name in case["links"]), None)

    def b(name: str) -> float:
        new = [operators[one]["bandwidth"] for one, other in crossing if link(one, other) == name]
        return float(case["links"][name]["load"] + sum(new))

    why = {f"node {node}" for node in graph.values() if p(node) >= 1}
    for one, other in crossing:
        name = link(one, other)
        if name is None:
            why.add(f"link {'-'.join(sorted((graph[one], graph[other])))}")
        elif b(name) >= 1:
            why.add(f"link {name}")
    if why:
        time = phi = None
        why.add("limit")
    else:

        def left(name: str) -> float:
            inputs = [
                left(operator)
                + (
                    operators[operator]["sigma"] / (1 - b(link(operator, name) or ""))
                    if (operator, name) in crossing
                    else 0
                )
                for operator in operators[name]["inputs"]
            ]
            return float(max(inputs, default=0) + operators[name]["tau"] / (1 - p(graph[name])))

        time = max(left(name) for name in operators)
        phi = sum(
            o["need"] / (1 - p(graph[n]) + o["need"]) for n, o in operators.items() if o["need"]
        )
        for one, other in crossing:
            taken = operators[one]["bandwidth"]
            phi += taken / (1 - b(link(one, other) or "") + taken) if taken else 0
        if time > case["request"]["limit"]:
            why.add("limit")
    after = {}
    for name, app in case["apps"].items():
        touched = [one for one in app["components"] if one["node"] in graph.values()]
        if touched:
            full = any(p(one["node"]) >= 1 for one in touched)
            deltas = [
                one["tau"] / (1 - p(one["node"]))
                - one["tau"] / (1 - case["nodes"][one["node"]]["load"])
                for one in touched
                if not full
            ]
            after[name] = None if full else app["time"] + sum(deltas)
            if full or app["time"] + sum(deltas) > app["limit"]:
                why.add(f"app {name}")
    return {"ok": not why, "time": time, "phi": phi, "after": after, "why": sorted(why)}
