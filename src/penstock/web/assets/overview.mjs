// What is wrong now and what helps; rates, latency and nodes at a glance.
import { Empty, Shares, Spark, State, Table, ago, bytes, clock, count, html, percent, seconds } from "./lib.mjs";
import { shares, useStore } from "./store.mjs";
import { Lines, aligned } from "./charts.mjs";

const TROUBLES = 5;
const LINES = 6;
const ROWS = 25;
const EVENTS = 12;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function Trouble({ trouble, act }) {
  const { move } = trouble;
  return html`<li class=${`trouble ${trouble.kind.replace(" ", "-")}`}>
    <span class="kind">${trouble.kind}</span><span class="what">${trouble.text}</span>
    <span class="help">
      ${move ? html`<button class="small" onClick=${() => act.move(move.fragment, move.node)}>Move ${move.fragment} to ${move.node}…</button>` : null}
      <code title="type this where the system was started">${trouble.command}</code></span></li>`;
}

function Troubles({ all, act }) {
  const more = all.length - TROUBLES;
  return html`<section class="card wide" aria-labelledby="troubles">
    <h2 id="troubles">Troubles <small>${all.length || "none"}</small></h2>
    ${all.length
      ? html`<ul class="troubles" aria-live="polite">${all.slice(0, TROUBLES).map((trouble) =>
          html`<${Trouble} key=${trouble.kind + trouble.subject} trouble=${trouble} act=${act} />`)}</ul>`
      : html`<p class="well">Nothing is wrong: every node is up, and every fragment keeps up.</p>`}
    ${more > 0 ? html`<p class="muted">and ${more} more, less bad</p>` : null}</section>`;
}

function Figure({ name, value, note }) {
  return html`<div class="figure"><b>${value}</b><span>${name}</span>${note ? html`<small>${note}</small>` : null}</div>`;
}

function Figures({ view, running }) {
  // What nobody has measured is not zero.
  const sum = (field) => {
    const known = running.map((fragment) => fragment.measured[field]).filter((n) => n !== undefined && n !== null);
    return known.length ? known.reduce((total, n) => total + n, 0) : null;
  };
  const slowest = Math.max(0, ...running.map((fragment) => fragment.measured.latency_p99_s || 0));
  const up = view.nodes.filter((node) => node.state === "up").length;
  return html`<section class="figures wide" aria-label="At a glance">
    <${Figure} name="rows/s in" value=${count(sum("rows_in_per_s"))} />
    <${Figure} name="rows out" value=${count(sum("rows_out"))} />
    <${Figure} name="unread rows" value=${count(sum("backlog_rows"))} />
    <${Figure} name="slowest p99" value=${slowest ? seconds(slowest) : "–"} />
    <${Figure} name="nodes up" value=${`${up} of ${view.nodes.length}`} />
    <${Figure} name="fragments" value=${running.length} note=${`of ${plural(view.queries.length, "submission")}`} />
  </section>`;
}

/** Rates and latencies of those with the most rows. */
function Charts({ running }) {
  const { fragments } = useStore();
  const rateOf = (fragment) => fragment.measured.rows_in_per_s || 0;
  const busiest = [...running].sort((a, b) => rateOf(b) - rateOf(a)).slice(0, LINES);
  const known = busiest.map(({ name }) => [name, fragments.get(name)]).filter(([, series]) => series?.at.length > 1);
  const chart = (title, field, format) => {
    const lines = aligned(known, (series) => series[field]);
    return html`<section class="card"><h2>${title}</h2>
      ${lines.at.length ? html`<${Lines} ...${lines} format=${format} />` : html`<${Empty}>Nothing has been measured yet.</${Empty}>`}</section>`;
  };
  return html`${chart("Rows per second in", "rate", count)}${chart("Latency of results", "latency", seconds)}`;
}

function Tile({ node }) {
  const used = useStore().nodes.get(node.name)?.utilisation || [];
  return html`<a class="tile" href=${`#/nodes/${encodeURIComponent(node.name)}`}>
    <span class="tile-head"><b>${node.name}</b><${State} of=${node.state} /></span>
    <${Spark} values=${used.slice(-60)} most=${1} title=${`CPU of ${node.name}`} />
    <span class="tile-foot"><b class=${node.utilisation >= 0.85 ? "late" : ""}>${percent(node.utilisation)}</b>${" "}
      of ${node.cores} · ${bytes(node.memory_bytes)} · ${plural(node.runs.length, "unit")}</span></a>`;
}

function Fragments({ running }) {
  if (!running.length)
    return html`<${Empty}>Nothing runs yet. Submit a query, or a deployment file: <code>penstock submit FILE</code></${Empty}>`;
  const more = running.length - ROWS;
  return html`<${Table} heads="fragment, on, state, #rows/s, #unread, #p50, #p99, #limit, busy · held back · idle">
      ${running.slice(0, ROWS).map(({ name, node, state, measured, late, limit_s: limit }) => html`<tr key=${name}>
        <td><a href=${`#/queries/${encodeURIComponent(name)}`}>${name}</a></td><td>${node || "–"}</td><td><${State} of=${state} /></td>
        <td class="n">${count(measured.rows_in_per_s)}</td><td class="n">${count(measured.backlog_rows)}</td>
        <td class="n">${seconds(measured.latency_p50_s)}</td><td class="n">${seconds(measured.latency_p99_s)}</td>
        <td class=${late ? "n late" : "n"}>${seconds(limit)}</td><td><${Shares} of=${shares(name)} /></td></tr>`)}</${Table}>
    ${more > 0 ? html`<p class="muted">and ${more} more: <a href="#/queries">all queries</a></p>` : null}`;
}

export function Overview({ act }) {
  const { view } = useStore();
  const running = view.fragments.filter((fragment) => fragment.kind === "fragment");
  const latest = [...view.events].reverse().slice(0, EVENTS);
  return html`<div class="grid">
    <${Figures} view=${view} running=${running} />
    <${Troubles} all=${view.troubles} act=${act} />
    <${Charts} running=${running} />
    <section class="card wide"><h2>Nodes</h2>
      <div class="tiles">${view.nodes.map((node) => html`<${Tile} key=${node.name} node=${node} />`)}</div></section>
    <section class="card wide"><h2>Fragments</h2><${Fragments} running=${running} /></section>
    <section class="card wide"><h2>What happened last</h2><ol class="events">${latest.map((event) => html`<li key=${event.id}>
      <time title=${ago(event.at_s, view.at_s)}>${clock(event.at_s)}</time> <b>${event.kind}</b> ${event.subject}: ${event.text}</li>`)}</ol></section>
  </div>`;
}
