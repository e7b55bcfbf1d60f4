// What nodes have, use and run.
import { Fact, Meter, Shares, State, Table, bytes, count, html, percent } from "./lib.mjs";
import { shares, useStore } from "./store.mjs";
import { Lines } from "./charts.mjs";
import { Broadcasts } from "./devices.mjs";
import { Joins } from "./joins.mjs";
import { Tree } from "./tree.mjs";

const FEW = 4; // So many nodes are shown with all they run.
const cpuS = (measured) => (measured.cpu_ms === undefined ? "–" : count(measured.cpu_ms / 1000));

/** All that runs on a node, as a table. */
function Runs({ units, act, canMove }) {
  if (!units.length) return html`<p class="empty">Nothing runs here.</p>`;
  const button = (name) => html`<button class="small" aria-label=${`Move ${name}`} onClick=${() => act.move(name)}>Move…</button>`;
  return html`<${Table} heads="runs, state, #rows/s, #cpu s, busy · held · idle, ">${units.map(({ name, state, measured }) => html`<tr key=${name}>
    <td><a href=${`#/queries/${encodeURIComponent(name)}`}>${name}</a></td><td><${State} of=${state} /></td>
    <td class="n">${count(measured.rows_in_per_s)}</td><td class="n">${cpuS(measured)}</td><td><${Shares} of=${shares(name)} /></td>
    <td>${canMove ? button(name) : null}</td></tr>`)}</${Table}>`;
}

/** What runs on a node, by its names alone. */
function Names({ node, units }) {
  return html`<p class="muted names">${units.map((unit) => unit.name).join(", ") || "nothing runs here"}</p>
    <p class="actions"><a href=${`#/nodes/${encodeURIComponent(node.name)}`}>more of ${node.name}</a></p>`;
}

function NodeCard({ node, act, isChosen }) {
  const { view, nodes } = useStore();
  const series = nodes.get(node.name);
  const units = view.fragments.filter((unit) => unit.node === node.name);
  const kinds = ["card", isChosen && "chosen", isChosen && view.nodes.length > FEW && "wide"];
  return html`<section class=${kinds.filter(Boolean).join(" ")} id=${`node-${node.name}`}>
    <h2>${node.name} <${State} of=${node.state} /></h2>
    <dl class="facts">
      <${Fact} name="CPU"><${Meter} share=${node.utilisation} /> ${percent(node.utilisation)} of ${node.cores} core${node.cores > 1 ? "s" : ""}</${Fact}>
      <${Fact} name="memory">${bytes(node.memory_bytes)} <small>Spark may use ${bytes(node.memory_limit_bytes)}</small></${Fact}>
      <${Fact} name="process">${node.pid || "–"} <small>penstock ${node.version || "–"}</small></${Fact}></dl>
    ${isChosen && series?.at.length > 1 ? html`<${Lines} at=${series.at} lines=${[{ name: "CPU", values: series.utilisation }]}
      format=${percent} most=${1} height=${140} />` : null}
    ${isChosen ? html`<${Runs} units=${units} act=${act} canMove=${view.nodes.length > 1} />` : html`<${Names} node=${node} units=${units} />`}
  </section>`;
}

export function Nodes({ rest, act }) {
  const { view } = useStore();
  const chosen = rest[0] || view.nodes[0]?.name;
  const isFew = view.nodes.length <= FEW;
  const shown = isFew ? view.nodes : [...view.nodes].sort((a, b) => (b.name === chosen) - (a.name === chosen));
  return html`<div class="grid two"><${Tree} />
    ${shown.map((node) => html`<${NodeCard} key=${node.name} node=${node} act=${act} isChosen=${isFew || node.name === chosen} />`)}
    <${Joins} /><${Broadcasts} />
    <section class="card wide"><h2>Would another query fit?</h2>
      <p class="muted">Paste it and look first: what it would share, where it would go, and whose results would be slower.</p>
      <p class="actions"><button id="admit" onClick=${act.submit}>Look…</button></p></section></div>`;
}
