// What the graph is drawn of: fragments, the nodes around them, the streams between them.
import { count, html, percent, seconds } from "./lib.mjs";
import { nodeShares, shares } from "./store.mjs";

const BEHIND_S = 10; // What a reader would need to catch up.

/** From the right of one box to the left of another, through the places the layout found. */
function curve(from, to, points) {
  const stops = [
    { x: from.x + from.width, y: from.y + from.height / 2 },
    ...points.slice(1, -1),
    { x: to.x - 1, y: to.y + to.height / 2 },
  ];
  let line = `M${stops[0].x},${stops[0].y}`;
  for (let at = 1; at < stops.length; at += 1) {
    const [a, b] = [stops[at - 1], stops[at]];
    const bend = Math.max(12, Math.abs(b.x - a.x) / 2);
    line += `C${a.x + bend},${a.y} ${b.x - bend},${b.y} ${b.x},${b.y}`;
  }
  return line;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function Unit({ unit, box, fragment, isChosen, isDim, choose }) {
  const share = shares(unit.name);
  const measured = fragment?.measured || {};
  const told =
    unit.kind === "intake"
      ? "brings in"
      : `${count(measured.rows_in_per_s)} rows/s · ${seconds(measured.latest_latency_s)}`;
  const width = box.width - 20;
  const kinds = ["unit", unit.kind, (fragment?.state || "").replace(" ", "-")];
  kinds.push(isChosen && "chosen", isDim && "dim", unit.shared && "shared");
  return html`<g class=${kinds.filter(Boolean).join(" ")}
      transform=${`translate(${box.x},${box.y})`} tabindex="0" role="button" aria-pressed=${isChosen} data-unit=${unit.name}
      aria-label=${`${unit.kind} ${unit.name}, ${fragment?.state || ""}, ${told}`} onClick=${choose}
      onKeyDown=${(e) => {
        if (e.key === "Enter" || e.key === " ") {
          e.preventDefault();
          choose();
        }
      }}>
    <title>${unit.name}${unit.shared ? " (shared)" : ""}: ${fragment?.state}</title>
    <rect width=${box.width} height=${box.height} rx="7" />
    <circle class="lamp" cx="14" cy="17" r="4" /><text x="25" y="21" class="name">${short(unit.name, 20)}</text>
    <text x="11" y="38" class="small">${told}</text>
    ${unit.operators.length ? html`<text x="11" y="52" class="small kinds">
      ${short(unit.operators.map((operator) => operator.kind).join(" → "), 28)}</text>` : null}
    ${
      share
        ? html`<rect class="track" x="10" y="59" width=${width} height="4" rx="2" />
          <rect class="busy" x="10" y="59" width=${width * share.busy} height="4" rx="2" />
          <rect class="held" x=${10 + width * share.busy} y="59" width=${width * share.held} height="4" />`
        : null
    }
  </g>`;
}

const NODE_BAR = 90;

/** A node as the box around what it runs, with what it does with its time. */
export function NodeBox({ box }) {
  const share = nodeShares(box.name);
  const [x, y] = [box.x + 18 + 7.6 * box.name.length, box.y + 7];
  const told = share
    ? `busy ${percent(share.busy)}, held back ${percent(share.held)}, idle ${percent(share.idle)}`
    : "not measured yet";
  return html`<g class="node-box" data-node=${box.name}><title>${box.name}: ${told}</title>
    <rect x=${box.x} y=${box.y} width=${box.width} height=${box.height} rx="10" />
      <text x=${box.x + 10} y=${box.y + 14}>${box.name}</text>
    ${
      share
        ? html`<rect class="idle" x=${x} y=${y} width=${NODE_BAR} height="6" rx="3" />
          <rect class="busy" x=${x} y=${y} width=${NODE_BAR * share.busy} height="6" rx="3" />
      <rect class="held" x=${x + NODE_BAR * share.busy} y=${y} width=${NODE_BAR * share.held} height="6" />
      <text class="told" x=${x + NODE_BAR + 7} y=${box.y + 14}>
        ${percent(share.busy)} busy${share.held >= 0.01 ? ` · ${percent(share.held)} held back` : ""}</text>`
        : null
    }</g>`;
}

/** Rows per second on an edge: as they are `read` by who reads nothing else, else as they are given. */
function edgeRate(maker, read) {
  if (read !== undefined) return read;
  const made = maker?.measured || {};
  return made.rows_in_per_s == null || made.selectivity == null ? null : made.rows_in_per_s * made.selectivity;
}

export function Edge({ path, from, to, reader, maker, read, isAlone, isDim }) {
  const measured = reader?.measured || {};
  const unread = (isAlone && measured.backlog_rows) || 0; // Of one that reads several, whose they are is not known.
  const rate = edgeRate(maker, isAlone ? measured.rows_in_per_s : read);
  const isBehind = unread > BEHIND_S * (measured.rows_in_per_s || Infinity);
  return html`<g class=${["edge", isDim && "dim", isBehind && "behind"].filter(Boolean).join(" ")}>
    <path d=${curve(from, to, path.points)} marker-end="url(#tip)" />
    ${rate === null ? null : html`<text x=${path.x} y=${path.y - 3}>${count(rate)}/s</text>`}
    ${unread ? html`<text x=${path.x} y=${path.y + 9}>${count(unread)} unread</text>` : null}</g>`;
}
