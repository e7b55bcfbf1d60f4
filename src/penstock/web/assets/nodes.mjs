// What nodes have, use and run.
import { Meter, Shares, State, bytes, count, html, percent } from "./lib.mjs";
import { shares, useStore } from "./store.mjs";
import { Lines } from "./charts.mjs";
import { Broadcasts } from "./devices.mjs";
import { Joins, Tree } from "./joins.mjs";

function One({ node, act, isChosen }) {
  const { view, nodes } = useStore();
  const series = nodes.get(node.name);
  const mine = view.fragments.filter((one) => one.node === node.name);
  return html`<section class=${`card${isChosen ? " chosen" : ""}${isChosen && view.nodes.length > 4 ? " wide" : ""}`} id=${`node-${node.name}`}><h2>${node.name} <${State} of=${node.state} /></h2>
    <dl class="facts"><div><dt>CPU</dt><dd><${Meter} share=${node.utilisation} /> ${percent(node.utilisation)} of ${node.cores} core${node.cores > 1 ? "s" : ""}</dd></div>
      <div><dt>memory</dt><dd>${bytes(node.memory_bytes)} <small>Spark may use ${bytes(node.memory_limit_bytes)}</small></dd></div>
      <div><dt>process</dt><dd>${node.pid || "–"} <small>penstock ${node.version || "–"}</small></dd></div></dl>
    ${isChosen && series && series.at.length > 1 ? html`<${Lines} at=${series.at} lines=${[{ name: "CPU", values: series.utilisation }]} format=${percent} most=${1} height=${140} />` : null}
    ${!isChosen ? html`<p class="muted names">${mine.map((one) => one.name).join(", ") || "nothing runs here"}</p><p class="actions"><a href=${`#/nodes/${encodeURIComponent(node.name)}`}>more of ${node.name}</a></p>` : mine.length ? html`<div class="scroll"><table><thead><tr><th>runs</th><th>state</th><th class="n">rows/s</th><th class="n">cpu s</th><th>busy · held · idle</th><th></th></tr></thead><tbody>${mine.map((one) => html`
      <tr key=${one.name}><td><a href=${`#/queries/${encodeURIComponent(one.name)}`}>${one.name}</a></td><td><${State} of=${one.state} /></td><td class="n">${count(one.measured.rows_in_per_s)}</td>
        <td class="n">${one.measured.cpu_ms === undefined ? "–" : count(one.measured.cpu_ms / 1000)}</td><td><${Shares} of=${shares(one.name)} /></td>
        <td>${view.nodes.length > 1 ? html`<button class="small" aria-label=${`Move ${one.name}`} onClick=${() => act.move(one.name)}>Move…</button>` : null}</td></tr>`)}</tbody></table></div>` : html`<p class="empty">Nothing runs here.</p>`}
  </section>`;
}

export function Nodes({ rest, act }) {
  const { view } = useStore();
  const chosen = rest[0] || view.nodes[0]?.name;
  const order = [...view.nodes].sort((a, b) => (b.name === chosen) - (a.name === chosen));
  return html`<div class="grid two"><${Tree} />${(view.nodes.length > 4 ? order : view.nodes).map((node) => html`<${One} key=${node.name} node=${node} act=${act} isChosen=${node.name === chosen || view.nodes.length <= 4} />`)}<${Joins} /><${Broadcasts} /></div>`;
}
