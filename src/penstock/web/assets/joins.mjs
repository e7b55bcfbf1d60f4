// Joins in parts: a heat map of their groups by node, by how much each part holds.
import { api, bytes, clock, count, html, percent, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const STEPS = 5;

/** The groups of a join in the order of their numbers, each as warm as the part that owns it. */
function Heat({ join }) {
  const most = Math.max(1, ...join.parts.map((part) => part.rows_held / Math.max(1, part.groups.length)));
  return html`<div class="heat" role="img" aria-label=${join.parts.map((part) => `${part.node || "nowhere"}: ${part.groups.length} groups`).join(", ")}>
    ${join.parts.map((part) => {
      const step = Math.min(STEPS, Math.ceil((STEPS * part.rows_held) / Math.max(1, part.groups.length) / most));
      return html`<div class="heat-row" key=${part.fragment}><b>${part.node || "–"}</b><span>${Array.from({ length: join.groups }, (_, group) => html`<i key=${group}
        class=${part.groups.includes(group) ? `h${step}` : part.arriving.includes(group) ? "coming" : ""} title=${`group ${group}`}></i>`)}</span></div>`;
    })}</div>`;
}

function Join({ join }) {
  return html`<section class="card wide"><h2>Join ${join.name} <small>${join.groups} groups, spread ${join.spread}, ${join.moved} moved so far</small></h2>
    <${Heat} join=${join} />
    <p class="keys">groups by the node of their part; the more rows a group holds, the darker</p>
    <div class="scroll"><table><thead><tr><th>part</th><th>on</th><th class="n">groups</th><th class="n">full</th><th class="n">rows/s</th><th class="n">rows held</th><th class="n">memory</th></tr></thead><tbody>${join.parts.map((part) => html`
      <tr key=${part.fragment}><td>${part.fragment}</td><td>${part.node || "–"}</td><td class="n">${part.groups.length}</td><td class="n">${percent(part.occupancy)}</td><td class="n">${count(part.rows_in_per_s)}</td><td class="n">${count(part.rows_held)}</td><td class="n">${bytes(part.bytes_held)}</td></tr>`)}</tbody></table></div></section>`;
}

export function Joins() {
  const { view } = useStore();
  const [joins, setJoins] = useState([]);
  const turn = Math.floor(view.at_s / 3);
  useEffect(() => { api("/api/joins").then(setJoins, () => {}); }, [turn]);
  return joins.map((join) => html`<${Join} key=${join.name} join=${join} />`);
}

/** The nodes below their parents, with what they use; nothing where they form no tree. */
export function Tree() {
  const { view } = useStore();
  const [negotiations, setNegotiations] = useState([]);
  const isTree = view.nodes.some((node) => node.parent);
  const turn = Math.floor(view.at_s / 3);
  useEffect(() => { if (isTree) api("/api/negotiations?last=12").then(setNegotiations, () => {}); }, [turn, isTree]);
  if (!isTree) return null;
  const below = (parent) => {
    const mine = view.nodes.filter((node) => (node.parent || null) === parent);
    return mine.length ? html`<ul>${mine.map((node) => html`<li key=${node.name}><a href=${`#/nodes/${encodeURIComponent(node.name)}`}>${node.name}</a>
      ${node.state === "up" ? html` <b class=${node.utilisation >= 0.85 ? "late" : ""}>${percent(node.utilisation)}</b>` : html` <span class="late">${node.state}</span>`}
      <small> ${node.runs.join(", ")}</small>${below(node.name)}</li>`)}</ul>` : null;
  };
  return html`<section class="card wide tree"><h2>Tree <small>a node speaks with those beside it</small></h2>${below(null)}
    ${negotiations.length ? html`<h3>What neighbours said to each other</h3><ol class="events">${[...negotiations].reverse().map((one) => html`<li key=${one.name}><time>${clock(one.at_s)}</time> <b>${one.node}</b> ${one.kind}: ${one.text}</li>`)}</ol>` : null}</section>`;
}
