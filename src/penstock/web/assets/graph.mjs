// Fragments in boxes of their nodes, and the streams between them.
import { Empty, Shares, State, count, html, percent, seconds, useEffect, useMemo, useRef, useState } from "./lib.mjs";
import { shares, useStore } from "./store.mjs";

/** The layout of a graph, made beside the page whenever its shape changes. */
function useLayout(units, edges) {
  const [found, setFound] = useState(null);
  const worker = useRef(null);
  const key = JSON.stringify([units, edges]);
  useEffect(() => {
    worker.current = new Worker("/assets/layout-worker.mjs", { type: "module" });
    worker.current.onmessage = ({ data }) => setFound(data);
    return () => worker.current.terminate();
  }, []);
  useEffect(() => { if (units.length) worker.current.postMessage({ key, units, edges }); }, [key]);
  return found;
}

/** From the right of one box to the left of another, through the places the layout found. */
function curve(from, to, points) {
  const stops = [{ x: from.x + from.width, y: from.y + from.height / 2 }, ...points.slice(1, -1), { x: to.x - 1, y: to.y + to.height / 2 }];
  let line = `M${stops[0].x},${stops[0].y}`;
  for (let at = 1; at < stops.length; at += 1) {
    const [a, b] = [stops[at - 1], stops[at]];
    const bend = Math.max(12, Math.abs(b.x - a.x) / 2);
    line += `C${a.x + bend},${a.y} ${b.x - bend},${b.y} ${b.x},${b.y}`;
  }
  return line;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function Unit({ unit, box, fragment, isChosen, isDim, choose }) {
  const share = shares(unit.name);
  const measured = fragment?.measured || {};
  const told = unit.kind === "intake" ? "brings in" : `${count(measured.rows_in_per_s)} rows/s · ${seconds(measured.latest_latency_s)}`;
  const width = box.width - 20;
  return html`<g class=${`unit ${unit.kind} ${(fragment?.state || "").replace(" ", "-")}${isChosen ? " chosen" : ""}${isDim ? " dim" : ""}${unit.shared ? " shared" : ""}`}
      transform=${`translate(${box.x},${box.y})`} tabindex="0" role="button" aria-pressed=${isChosen} data-unit=${unit.name}
      aria-label=${`${unit.kind} ${unit.name}, ${fragment?.state || ""}, ${told}`} onClick=${choose}
      onKeyDown=${(e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); } }}>
    <title>${unit.name}${unit.shared ? " (shared)" : ""}: ${fragment?.state}</title>
    <rect width=${box.width} height=${box.height} rx="7" />
    <circle class="lamp" cx="14" cy="17" r="4" /><text x="25" y="21" class="name">${short(unit.name, 20)}</text>
    <text x="11" y="38" class="small">${told}</text>
    ${unit.operators.length ? html`<text x="11" y="52" class="small kinds">${short(unit.operators.map((one) => one.kind).join(" → "), 28)}</text>` : null}
    ${share ? html`<rect class="track" x="10" y="59" width=${width} height="4" rx="2" /><rect class="busy" x="10" y="59" width=${width * share.busy} height="4" rx="2" />
      <rect class="held" x=${10 + width * share.busy} y="59" width=${width * share.held} height="4" />` : null}
  </g>`;
}

function Side({ unit, fragment, act, graph }) {
  if (!unit) return html`<aside class="card side"><h2>Graph</h2><p class="muted">Choose a fragment to see what it does and to move it. Rows flow from left to right; among more than 40 fragments only the streams of the chosen one, or of the query that is followed, are drawn.</p>
    <p class="keys"><i class="busy"></i>busy <i class="held"></i>held back <i class="idle"></i>idle <i class="shared"></i>shared by several</p></aside>`;
  const measured = fragment?.measured || {}, share = shares(unit.name);
  const readers = graph.filter((one) => one.reads.includes(unit.gives)).map((one) => one.name);
  return html`<aside class="card side"><h2>${unit.name}</h2><p><${State} of=${fragment?.state || "unknown"} /> on <b>${fragment?.node || "–"}</b>${unit.shared ? html` · <span class="shared-word">shared</span>` : null}</p>
    ${fragment?.error ? html`<pre class="error">${fragment.error}</pre>` : null}
    ${(fragment?.notes || []).map((note) => html`<p class="reason">${note}</p>`)}
    <dl class="facts"><div><dt>of</dt><dd>${unit.submission}</dd></div><div><dt>reads</dt><dd>${unit.reads.join(", ") || "the outside"}</dd></div><div><dt>read by</dt><dd>${readers.join(", ") || "nobody here"}</dd></div>
      <div><dt>rows/s in</dt><dd>${count(measured.rows_in_per_s)}</dd></div><div><dt>unread rows</dt><dd>${count(measured.backlog_rows)}</dd></div><div><dt>state rows</dt><dd>${count(measured.state_rows)}</dd></div>
      <div><dt>cost</dt><dd>${measured.cost_us == null ? "–" : `${measured.cost_us.toFixed(1)} µs a row`}</dd></div><div><dt>p99</dt><dd>${seconds(measured.latency_p99_s)}${fragment?.limit_s ? ` of ${seconds(fragment.limit_s)}` : ""}</dd></div>
      <div><dt>time</dt><dd>${share ? `busy ${percent(share.busy)}, held ${percent(share.held)}, idle ${percent(share.idle)}` : "–"}</dd></div></dl>
    ${unit.operators.length ? html`<h3>Operators</h3><ol class="operators">${unit.operators.map((one) => html`<li key=${one.name}><span class="chip">${one.kind}</span> ${one.name}</li>`)}</ol>` : null}
    <p class="actions"><button class="primary" id="move-unit" onClick=${() => act.move(unit.name)}>Move…</button> <a href=${`#/queries/${encodeURIComponent(unit.name)}`}>rows and SQL</a></p></aside>`;
}

export function GraphPage({ rest, act }) {
  const { view, graph } = useStore();
  const [followed, setFollowed] = useState(rest[0] || "");
  const [chosen, setChosen] = useState(null);
  const [times, setTimes] = useState(1);
  const canvas = useRef(null);
  const fragments = useMemo(() => new Map(view.fragments.map((one) => [one.name, one])), [view]);
  const makers = useMemo(() => new Map(graph.map((unit) => [unit.gives, unit.name])), [graph]);
  const units = graph.map((unit) => ({ name: unit.name, node: fragments.get(unit.name)?.node || "nowhere yet" }));
  const edges = useMemo(() => graph.flatMap((unit) => unit.reads.filter((stream) => makers.has(stream)).map((stream) => ({ from: makers.get(stream), to: unit.name, stream }))), [graph]);
  const found = useLayout(units, edges);
  const inputs = useMemo(() => new Map(graph.map((unit) => [unit.name, unit.reads.length])), [graph]);
  const queries = [...new Set(graph.flatMap((unit) => unit.queries))].sort();
  const lit = useMemo(() => behind(graph, makers, followed), [graph, followed]);
  if (!graph.length) return html`<section class="card"><h2>Graph</h2><${Empty}>Nothing runs yet.</${Empty}></section>`;
  const unit = graph.find((one) => one.name === chosen);
  const room = (canvas.current?.offsetWidth || 1000) - 18; // Beside the bar to scroll with.
  const zoom = times * Math.max(0.45, Math.min(1, found ? room / found.width : 1));
  const isDrawn = (edge) => !found.many || (lit && lit.has(edge.from) && lit.has(edge.to)) || edge.from === chosen || edge.to === chosen;
  return html`<div class="graph-page"><section class="card graph">
    <div class="toolbar"><label>Follow <select id="follow" value=${followed} onChange=${(e) => setFollowed(e.target.value)}><option value="">every query</option>${queries.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <span><button class="small" aria-label="Smaller" onClick=${() => setTimes(times / 1.25)}>−</button> <button class="small" aria-label="Larger" onClick=${() => setTimes(times * 1.25)}>+</button></span></div>
    <div class="canvas" ref=${canvas}>${found ? html`<svg width=${found.width * zoom} height=${found.height * zoom} viewBox=${`0 0 ${found.width} ${found.height}`} role="group" aria-label="Fragments and the streams between them">
      <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0L8,4L0,8z" /></marker></defs>
      ${found.nodes.map((node) => html`<g key=${node.name} class="node-box"><rect x=${node.x} y=${node.y} width=${node.width} height=${node.height} rx="10" /><text x=${node.x + 10} y=${node.y + 13}>${node.name}</text></g>`)}
      ${edges.map((edge, at) => isDrawn(edge) && found.boxes[edge.from] && found.boxes[edge.to] && found.paths[at] && html`<${Edge} key=${`${edge.from} ${edge.to} ${edge.stream}`} path=${found.paths[at]} from=${found.boxes[edge.from]} to=${found.boxes[edge.to]} reader=${fragments.get(edge.to)} maker=${fragments.get(edge.from)} isAlone=${inputs.get(edge.to) === 1} isDim=${lit && !(lit.has(edge.from) && lit.has(edge.to))} />`)}
      ${graph.map((one) => found.boxes[one.name] && html`<${Unit} key=${one.name} unit=${one} box=${found.boxes[one.name]} fragment=${fragments.get(one.name)} isChosen=${one.name === chosen} isDim=${lit && !lit.has(one.name)} choose=${() => setChosen(one.name === chosen ? null : one.name)} />`)}
    </svg>` : html`<p class="empty">Laying out…</p>`}</div></section>
    <${Side} unit=${unit} fragment=${unit && fragments.get(unit.name)} act=${act} graph=${graph} /></div>`;
}

/** Rows per second on an edge: as they are read by one that reads nothing else, else as they are given. */
function edgeRate(maker, reader, isAlone) {
  if (isAlone || maker?.kind === "intake") return isAlone ? reader?.measured.rows_in_per_s : null;
  const made = maker?.measured || {};
  return made.rows_in_per_s == null || made.selectivity == null ? null : made.rows_in_per_s * made.selectivity;
}

function Edge({ path, from, to, reader, maker, isAlone, isDim }) {
  const measured = reader?.measured || {}, unread = (isAlone && measured.backlog_rows) || 0;
  const told = `${count(edgeRate(maker, reader, isAlone))}/s${unread ? ` · ${count(unread)} unread` : ""}`;
  return html`<g class=${`edge${isDim ? " dim" : ""}${unread > 10 * (measured.rows_in_per_s || 1e9) ? " behind" : ""}`}>
    <path d=${curve(from, to, path.points)} marker-end="url(#tip)" /><text x=${path.x} y=${path.y - 3}>${told}</text></g>`;
}

/** A query with all it reads; null for all. */
function behind(graph, makers, query) {
  if (!query) return null;
  const byName = new Map(graph.map((unit) => [unit.name, unit]));
  const waiting = graph.filter((unit) => unit.queries.includes(query)).map((unit) => unit.name);
  const found = new Set();
  while (waiting.length) {
    const name = waiting.pop();
    if (found.has(name) || !byName.has(name)) continue;
    found.add(name);
    waiting.push(...byName.get(name).reads.map((stream) => makers.get(stream)).filter(Boolean));
  }
  return found;
}
