// Fragments in boxes of their nodes, and the streams between them.
import { Empty, Fact, State, count, html, percent, seconds, useEffect, useMemo, useRef, useState } from "./lib.mjs";
import { shares, useStore } from "./store.mjs";
import { Edge, NodeBox, Unit } from "./graph-parts.mjs";

const ZOOM = 1.25;
const SMALLEST = 0.6; // Words can still be read.
const LARGEST = 1.2;
const BESIDE = 200; // What else is above and below the picture.

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
  useEffect(() => {
    if (units.length) worker.current.postMessage({ key, units, edges });
  }, [key]);
  return found;
}

/** What is known of the unit that was chosen, and what can be done with it. */
function Side({ unit, fragment, act, graph }) {
  if (!unit)
    return html`<aside class="card side"><h2>Graph</h2>
      <p class="muted">Choose a fragment to see what it does and to move it. Rows flow from left to right; among more
        than 40 fragments only the streams of the chosen one, or of the query that is followed, are drawn.</p>
      <p class="keys"><i class="busy"></i>busy <i class="held"></i>held back <i class="idle"></i>idle${" "}
        <i class="shared"></i>shared by several</p></aside>`;
  const measured = fragment?.measured || {};
  const share = shares(unit.name);
  const readers = graph.filter((reader) => reader.reads.includes(unit.gives)).map((reader) => reader.name);
  const limit = fragment?.limit_s ? ` of ${seconds(fragment.limit_s)}` : "";
  return html`<aside class="card side"><h2>${unit.name}</h2>
    <p><${State} of=${fragment?.state || "unknown"} /> on <b>${fragment?.node || "–"}</b>
      ${unit.shared ? html` · <span class="shared-word">shared</span>` : null}</p>
    ${fragment?.error ? html`<pre class="error">${fragment.error}</pre>` : null}
    ${(fragment?.notes || []).map((note) => html`<p class="reason" key=${note}>${note}</p>`)}
    <dl class="facts">
      <${Fact} name="of">${unit.submission}</${Fact}>
      <${Fact} name="reads">${unit.reads.join(", ") || "the outside"}</${Fact}>
      <${Fact} name="read by">${readers.join(", ") || "nobody here"}</${Fact}>
      <${Fact} name="rows/s in">${count(measured.rows_in_per_s)}</${Fact}>
      <${Fact} name="unread rows">${count(measured.backlog_rows)}</${Fact}>
      <${Fact} name="state rows">${count(measured.state_rows)}</${Fact}>
      <${Fact} name="cost">${measured.cost_us == null ? "–" : `${measured.cost_us.toFixed(1)} µs a row`}</${Fact}>
      <${Fact} name="p99">${seconds(measured.latency_p99_s)}${limit}</${Fact}>
      <${Fact} name="time">${share ? `busy ${percent(share.busy)}, held ${percent(share.held)}, idle ${percent(share.idle)}` : "–"}</${Fact}></dl>
    ${unit.operators.length ? html`<h3>Operators</h3><ol class="operators">${unit.operators.map((operator) => html`<li key=${operator.name}>
      <span class="chip">${operator.kind}</span> ${operator.name}</li>`)}</ol>` : null}
    <p class="actions"><button class="primary" id="move-unit" onClick=${() => act.move(unit.name)}>Move…</button>${" "}
      <a href=${`#/queries/${encodeURIComponent(unit.name)}`}>rows and SQL</a></p></aside>`;
}

/** The picture: nodes first, then streams, then what runs, so that the latter are on top. */
function Drawing({ found, zoom, graph, edges, fragments, lit, chosen, choose }) {
  const alone = graph.filter((unit) => unit.reads.length === 1);
  const inputs = new Set(alone.map((unit) => unit.name));
  const read = new Map(alone.map((unit) => [unit.reads[0], fragments.get(unit.name)?.measured.rows_in_per_s]));
  const isLit = (edge) => lit.has(edge.from) && lit.has(edge.to);
  const isWanted = (edge) => (lit && isLit(edge)) || edge.from === chosen || edge.to === chosen;
  const isDrawn = (edge, at) =>
    found.boxes[edge.from] && found.boxes[edge.to] && found.paths[at] && (!found.many || isWanted(edge));
  return html`<svg width=${found.width * zoom} height=${found.height * zoom}
      viewBox=${`0 0 ${found.width} ${found.height}`} role="group" aria-label="Fragments and the streams between them">
    <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
      <path d="M0,0L8,4L0,8z" /></marker></defs>
    ${found.nodes.map((box) => html`<${NodeBox} key=${box.name} box=${box} />`)}
    ${edges.map((edge, at) => isDrawn(edge, at) && html`<${Edge} key=${`${edge.from} ${edge.to} ${edge.stream}`}
      path=${found.paths[at]} from=${found.boxes[edge.from]} to=${found.boxes[edge.to]}
      maker=${fragments.get(edge.from)} reader=${fragments.get(edge.to)}
      read=${read.get(edge.stream)} isAlone=${inputs.has(edge.to)} isDim=${lit && !isLit(edge)} />`)}
    ${graph.map((unit) => found.boxes[unit.name] && html`<${Unit} key=${unit.name}
      unit=${unit} box=${found.boxes[unit.name]} fragment=${fragments.get(unit.name)}
      isChosen=${unit.name === chosen} isDim=${lit && !lit.has(unit.name)}
      choose=${() => choose(unit.name === chosen ? null : unit.name)} />`)}
  </svg>`;
}

export function GraphPage({ rest, act }) {
  const { view, graph } = useStore();
  const [followed, setFollowed] = useState(rest[0] || "");
  const [chosen, setChosen] = useState(null);
  const [times, setTimes] = useState(1);
  const canvas = useRef(null);
  const [, redraw] = useState(0);
  useEffect(() => {
    const fit = () => redraw((n) => n + 1);
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, []);
  const fragments = useMemo(() => new Map(view.fragments.map((fragment) => [fragment.name, fragment])), [view]);
  const makers = useMemo(() => new Map(graph.map((unit) => [unit.gives, unit.name])), [graph]);
  const units = graph.map((unit) => ({ name: unit.name, node: fragments.get(unit.name)?.node || "nowhere yet" }));
  const edges = useMemo(() => edgesOf(graph, makers), [graph]);
  const found = useLayout(units, edges);
  const queries = [...new Set(graph.flatMap((unit) => unit.queries))].sort();
  const lit = useMemo(() => behind(graph, makers, followed), [graph, followed]);
  if (!graph.length)
    return html`<section class="card"><h2>Graph</h2><${Empty}>Nothing runs yet.</${Empty}></section>`;
  const unit = graph.find(({ name }) => name === chosen);
  const zoom = times * (found ? fitting(found, canvas.current) : 1);
  return html`<div class="graph-page"><section class="card graph">
    <div class="toolbar">
      <label>Follow <select id="follow" value=${followed} onChange=${(e) => setFollowed(e.target.value)}>
        <option value="">every query</option>
        ${queries.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <span class="zoom">
        <button class="small" aria-label="Smaller" onClick=${() => setTimes(times / ZOOM)}>−</button>
        <button class="small" aria-label="Larger" onClick=${() => setTimes(times * ZOOM)}>+</button></span></div>
    <div class="canvas" ref=${canvas}>${
      found
        ? html`<${Drawing} ...${{ found, zoom, graph, edges, fragments, lit, chosen }} choose=${setChosen} />`
        : html`<p class="empty">Laying out…</p>`
    }</div></section>
    <${Side} unit=${unit} fragment=${unit && fragments.get(unit.name)} act=${act} graph=${graph} /></div>`;
}

/** How large a picture may be that is seen as a whole, as far as its words can still be read. */
function fitting({ width, height }, canvas) {
  const across = (canvas?.offsetWidth || 1000) - 18; // Beside the bar to scroll with.
  const down = innerHeight - BESIDE;
  return Math.max(SMALLEST, Math.min(LARGEST, across / width, Math.max(SMALLEST, down / height)));
}

/** An edge for every stream that one unit gives and another reads. */
function edgesOf(graph, makers) {
  const read = graph.flatMap((unit) => unit.reads.map((stream) => ({ from: makers.get(stream), to: unit.name, stream })));
  return read.filter((edge) => edge.from);
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
    waiting.push(
      ...byName
        .get(name)
        .reads.map((stream) => makers.get(stream))
        .filter(Boolean),
    );
  }
  return found;
}
