// Joins in parts: a heat map of their groups by node, by how many rows each part holds of a group.
import { Table, api, bytes, count, html, percent, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const STEPS = 5;
const ASK_EVERY_S = 3;

const rowsAGroup = (part) => part.rows_held / Math.max(1, part.groups.length);

/** The groups of a join in the order of their numbers, a line for each part that owns some. */
function Heat({ join }) {
  const most = Math.max(1, ...join.parts.map(rowsAGroup));
  const told = join.parts.map(
    (part) => `${part.fragment} on ${part.node || "no node"}: groups ${part.groups.join(", ") || "none"}`,
  );
  return html`<div class="heat" role="img" aria-label=${told.join("; ")}>
    ${join.parts.map(
      (part) => html`<div class="heat-row" key=${part.fragment}><b title=${part.fragment}>${part.node || "–"}</b>
      <span>${Array.from({ length: join.groups }, (_, group) => html`<${Group} key=${group} group=${group} part=${part} most=${most} />`)}</span></div>`,
    )}
    <div class="heat-numbers" aria-hidden="true"><b></b><span><small>group 0</small><small>
      ${join.groups - 1}</small></span></div></div>
    <p class="keys" aria-hidden="true">rows held of a group: none${" "}
      ${Array.from({ length: STEPS + 1 }, (_, step) => html`<i key=${step} class=${`h${step}`}></i>`)} ${count(most)}
      <i class="coming"></i>on its way</p>`;
}

function Group({ group, part, most }) {
  const owned = part.groups.includes(group),
    coming = part.arriving.includes(group);
  const kind = owned ? `h${Math.min(STEPS, Math.ceil((STEPS * rowsAGroup(part)) / most))}` : coming ? "coming" : "";
  const told = owned
    ? `group ${group}: about ${count(rowsAGroup(part))} rows`
    : coming
      ? `group ${group} is on its way`
      : "";
  return html`<i class=${kind} title=${told}></i>`;
}

function Join({ join }) {
  return html`<section class="card wide"><h2>Join ${join.name} <small>${join.groups} groups, spread ${join.spread}, ${join.moved} moved so far</small></h2>
    <${Heat} join=${join} />
    <${Table} heads="part, on, #groups, #full, #rows/s, #rows held, #memory">${join.parts.map((part) => html`<tr key=${part.fragment}>
      <td>${part.fragment}</td><td>${part.node || "–"}</td><td class="n">${part.groups.length}</td>
      <td class="n">${percent(part.occupancy)}</td><td class="n">${count(part.rows_in_per_s)}</td>
      <td class="n">${count(part.rows_held)}</td><td class="n">${bytes(part.bytes_held)}</td></tr>`)}</${Table}></section>`;
}

export function Joins() {
  const { view } = useStore();
  const [joins, setJoins] = useState([]);
  const turn = Math.floor(view.at_s / ASK_EVERY_S);
  useEffect(() => {
    api("/api/joins").then(setJoins, () => {});
  }, [turn]);
  return joins.map((join) => html`<${Join} key=${join.name} join=${join} />`);
}
