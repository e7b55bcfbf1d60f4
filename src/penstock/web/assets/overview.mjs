// What is wrong now and what helps; rates, latency and nodes at a glance.
import { Empty, Shares, Spark, State, ago, bytes, clock, count, html, percent, seconds } from "./lib.mjs";
import { shares, useStore } from "./store.mjs";
import { Lines, aligned } from "./charts.mjs";

const SHOWN = 5;
const ROWS = 25;

function Trouble({ one, act }) {
  return html`<li class=${`trouble ${one.kind.replace(" ", "-")}`}>
    <span class="kind">${one.kind}</span><span class="what">${one.text}</span>
    <span class="help">${one.move ? html`<button class="small" onClick=${() => act.move(one.move.fragment, one.move.node)}>Move ${one.move.fragment} to ${one.move.node}…</button>` : null}
      <code title="type this where the system was started">${one.command}</code></span></li>`;
}

function Troubles({ all, act }) {
  const more = all.length - SHOWN;
  return html`<section class="card wide" aria-labelledby="troubles"><h2 id="troubles">Troubles <small>${all.length || "none"}</small></h2>
    ${all.length ? html`<ul class="troubles" aria-live="polite">${all.slice(0, SHOWN).map((one) => html`<${Trouble} key=${one.kind + one.subject} one=${one} act=${act} />`)}</ul>` : html`<p class="well">Nothing is wrong: every node is up, and every fragment keeps up.</p>`}
    ${more > 0 ? html`<p class="muted">and ${more} more, less bad</p>` : null}</section>`;
}

function Figure({ name, value, note }) {
  return html`<div class="figure"><b>${value}</b><span>${name}</span>${note ? html`<small>${note}</small>` : null}</div>`;
}

export function Overview({ act }) {
  const { view, fragments, nodes } = useStore();
  const running = view.fragments.filter((one) => one.kind === "fragment");
  // What nobody has measured is not zero.
  const sum = (pick) => {
    const known = running.map((one) => pick(one.measured)).filter((n) => n !== undefined && n !== null);
    return known.length ? known.reduce((total, n) => total + n, 0) : null;
  };
  const slowest = Math.max(0, ...running.map((one) => one.measured.latency_p99_s || 0));
  const busiest = [...running].sort((a, b) => (b.measured.rows_in_per_s || 0) - (a.measured.rows_in_per_s || 0)).slice(0, 6);
  const known = busiest.map((one) => [one.name, fragments.get(one.name)]).filter(([, one]) => one && one.at.length > 1);
  const rates = aligned(known, (one) => one.rate);
  const delays = aligned(known, (one) => one.latency);
  return html`<div class="grid">
    <section class="figures wide" aria-label="At a glance">
      <${Figure} name="rows/s in" value=${count(sum((m) => m.rows_in_per_s))} />
      <${Figure} name="rows out" value=${count(sum((m) => m.rows_out))} />
      <${Figure} name="unread rows" value=${count(sum((m) => m.backlog_rows))} />
      <${Figure} name="slowest p99" value=${slowest ? seconds(slowest) : "–"} />
      <${Figure} name="nodes up" value=${`${view.nodes.filter((one) => one.state === "up").length} of ${view.nodes.length}`} />
      <${Figure} name="fragments" value=${running.length} note=${`of ${view.queries.length} submission${view.queries.length === 1 ? "" : "s"}`} />
    </section>
    <${Troubles} all=${view.troubles} act=${act} />
    <section class="card"><h2>Rows per second in</h2>
      ${rates.at.length ? html`<${Lines} ...${rates} format=${count} />` : html`<${Empty}>Nothing has been measured yet.</${Empty}>`}</section>
    <section class="card"><h2>Latency of results</h2>
      ${delays.at.length ? html`<${Lines} ...${delays} format=${seconds} />` : html`<${Empty}>Nothing has been measured yet.</${Empty}>`}</section>
    <section class="card wide"><h2>Nodes</h2><div class="tiles">${view.nodes.map((node) => html`
      <a class="tile" key=${node.name} href=${`#/nodes/${encodeURIComponent(node.name)}`}>
        <span class="tile-head"><b>${node.name}</b><${State} of=${node.state} /></span>
        <${Spark} values=${(nodes.get(node.name)?.utilisation || []).slice(-60)} most=${1} width=${150} title=${`CPU of ${node.name}`} />
        <span class="tile-foot"><b class=${node.utilisation >= 0.85 ? "late" : ""}>${percent(node.utilisation)}</b> of ${node.cores} · ${bytes(node.memory_bytes)} · ${node.runs.length} units</span></a>`)}</div></section>
    <section class="card wide"><h2>Fragments</h2>${running.length ? html`<div class="scroll"><table>
      <thead><tr><th>fragment</th><th>on</th><th>state</th><th class="n">rows/s</th><th class="n">unread</th><th class="n">p50</th><th class="n">p99</th><th class="n">limit</th><th>busy · held back · idle</th></tr></thead>
      <tbody>${running.slice(0, ROWS).map((one) => html`<tr key=${one.name}>
        <td><a href=${`#/queries/${encodeURIComponent(one.name)}`}>${one.name}</a></td><td>${one.node || "–"}</td><td><${State} of=${one.state} /></td>
        <td class="n">${count(one.measured.rows_in_per_s)}</td><td class="n">${count(one.measured.backlog_rows)}</td>
        <td class="n">${seconds(one.measured.latency_p50_s)}</td><td class="n">${seconds(one.measured.latency_p99_s)}</td>
        <td class=${one.late ? "n late" : "n"}>${one.limit_s === null ? "–" : seconds(one.limit_s)}</td><td><${Shares} of=${shares(one.name)} /></td></tr>`)}</tbody></table></div>
      ${running.length > ROWS ? html`<p class="muted">and ${running.length - ROWS} more: <a href="#/queries">all queries</a></p>` : null}` : html`<${Empty}>Nothing runs yet. Submit a query, or a deployment file: <code>penstock submit FILE</code></${Empty}>`}</section>
    <section class="card wide"><h2>What happened last</h2><ol class="events">${[...view.events].reverse().slice(0, 12).map((one) => html`
      <li key=${one.id}><time title=${ago(one.at_s, view.at_s)}>${clock(one.at_s)}</time> <b>${one.kind}</b> ${one.subject}: ${one.text}</li>`)}</ol></section>
  </div>`;
}
