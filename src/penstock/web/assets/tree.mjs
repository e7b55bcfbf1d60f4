// Nodes that form a tree: what each uses, and what neighbours said to each other.
import { Meter, State, api, clock, html, percent, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const TOLD = 8;
const UNITS = 4;
const ASK_EVERY_S = 3;

/** The nodes below their parents; nothing where they form no tree. */
export function Tree() {
  const { view } = useStore();
  const [negotiations, setNegotiations] = useState([]);
  const isTree = view.nodes.some((node) => node.parent);
  const turn = Math.floor(view.at_s / ASK_EVERY_S);
  useEffect(() => {
    if (isTree) api(`/api/negotiations?last=${TOLD}`).then(setNegotiations, () => {});
  }, [turn, isTree]);
  if (!isTree) return null;
  return html`<section class="card wide tree">
    <h2>Tree <small>each node speaks with its parent and its children only</small></h2>
    <${Below} parent=${null} nodes=${view.nodes} />
    <h3>What neighbours said to each other</h3>
    ${
      negotiations.length
        ? html`<ol class="negotiations">
          ${[...negotiations].reverse().map((negotiation) => html`<${Negotiation} key=${negotiation.name} told=${negotiation} />`)}</ol>`
        : html`<p class="muted">Nobody has had anything to give so far. They negotiate under the policy hierarchy.</p>`
    }
  </section>`;
}

function Below({ parent, nodes }) {
  const mine = nodes.filter((node) => (node.parent || null) === parent);
  if (!mine.length) return null;
  return html`<ul>${mine.map((node) => html`<li key=${node.name}>
    <a href=${`#/nodes/${encodeURIComponent(node.name)}`}>${node.name}</a>${" "}<${Use} node=${node} />${" "}
    <small>${node.runs.join(", ") || "runs nothing"}</small>
    <${Below} parent=${node.name} nodes=${nodes} /></li>`)}</ul>`;
}

function Use({ node }) {
  if (node.state !== "up") return html`<${State} of=${node.state} />`;
  return html`<${Meter} share=${node.utilisation} label=${`CPU of ${node.name}`} />${" "}
    <b class=${node.utilisation >= 0.85 ? "late" : ""}>${percent(node.utilisation)}</b>`;
}

/** Who began it and why, and what became of it with each neighbour. */
function Negotiation({ told }) {
  const used = `${Math.round(told.utilisation)} % used`;
  const why =
    told.kind === "offer" ? `offers what is above ${told.upper} %` : `asks for load, being below ${told.lower} %`;
  return html`<li class="negotiation"><time>${clock(told.at_s)}</time> <b>${told.node}</b> ${why} <small>
    ${used}</small>
    <ul>${told.peers.map((peer) => html`<li key=${peer.node}><b>${peer.node}</b> ${outcome(told.kind, peer)} <small>
      ${peer.why}</small></li>`)}</ul></li>`;
}

function outcome(kind, peer) {
  const verb = kind === "offer" ? "took" : "gave";
  if (peer.moved.length) return html`${verb} <b class="well">${peer.moved.join(", ")}</b>`;
  const spoken = kind === "offer" ? peer.offered : peer.agreed;
  return `${verb} nothing${spoken.length ? ` of ${listed(spoken)}` : ""}`;
}

function listed(portions) {
  const told = portions
    .slice(0, UNITS)
    .map(([units, size]) => `${units.join(" + ")} (${size.toFixed(0)} %)`)
    .join(", ");
  return portions.length > UNITS ? `${told} and ${portions.length - UNITS} more` : told;
}
