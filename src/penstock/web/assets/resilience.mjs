// How much bursting the placement takes: its feasible set, where the rates are, and rivals.
import { Empty, Meter, Table, api, count, html, percent, useEffect, useRef, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";
import { Cut, rate, seriesOf } from "./feasible-cut.mjs";

const ASK_EVERY_S = 3;
const TRAIL = 60;
const NOTES = 5;
const FEW = 4;

/** The feasible set cut along two streams, asked for again and again, and where the rates have been. */
function useResilience(axes) {
  const { view } = useStore();
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const trail = useRef([]), asking = useRef(null);
  const turn = Math.floor(view.at_s / ASK_EVERY_S);
  useEffect(() => { trail.current = []; }, [axes]);
  useEffect(() => {
    const asked = String(new URLSearchParams(Object.entries(axes).filter(([, name]) => name)));
    if (asking.current === asked) return; // The first answer takes a while.
    asking.current = asked;
    api(`/api/resilience?${asked}`).finally(() => { asking.current = null; }).then((told) => {
      trail.current = [...trail.current.slice(-TRAIL), [rate(told, told.x), rate(told, told.y)]];
      setFound(told);
      setError(null);
    }, setError);
  }, [turn, axes]);
  return { found, error, trail: trail.current };
}

export function ResiliencePage() {
  const [axes, setAxes] = useState({ x: "", y: "" });
  const [rivals, setRivals] = useState(new Set());
  const { found, error, trail } = useResilience(axes);
  if (error) return html`<section class="card"><h2>Resilience</h2><pre class="error">${error.message}</pre></section>`;
  if (!found) return html`<section class="card"><h2>Resilience</h2><p class="empty">Planning… The first time on a machine that takes up to a minute.</p></section>`;
  if (!found.plans.length)
    return html`<section class="card"><h2>Resilience</h2><${Empty}>${found.notes.join("; ") || "Nothing runs yet."}</${Empty}></section>`;
  const [current, ...others] = found.plans;
  const toggle = (name) => {
    const next = new Set(rivals);
    if (!next.delete(name)) next.add(name);
    setRivals(next);
  };
  // Two axes of one stream would be none: they change places.
  const choose = (axis, name) => {
    const other = axis === "x" ? "y" : "x";
    setAxes({ [axis]: name, [other]: name === found[other] ? found[axis] : found[other] });
  };
  return html`<div class="grid two"><section class="card"><h2>Rates that fit</h2>
      <${Worth} plan=${current} streams=${found.streams.length} />
      ${found.x === found.y ? html`<${OnlyRate} of=${found.streams[0]} />` : html`
        <div class="toolbar"><${Axis} id="axis-x" label="Across" found=${found} value=${found.x} choose=${(name) => choose("x", name)} />
          <${Axis} id="axis-y" label="Up" found=${found} value=${found.y} choose=${(name) => choose("y", name)} /></div>
        <${Cut} found=${found} shown=${new Set([current.plan, ...rivals])} trail=${trail} />`}
      <p class="keys"><i class="current"></i>as it runs <i class="ideal"></i>no plan can take more <i class="now"></i>now</p></section>
    <section class="card"><h2>How far each stream could rise alone</h2>
      <div class="rises"><${Table} heads="stream, #rows/s now, #alone up to, #times, then full">
        ${found.streams.map((stream) => html`<${Rise} key=${stream.variable} stream=${stream} />`)}</${Table}></div>
      <h2 class="apart">Rivals</h2>
      <${Table} heads="plan, #of ideal, puts">${others.map((plan, at) => html`<tr key=${plan.plan}>
        <td class="nowrap"><label><input type="checkbox" checked=${rivals.has(plan.plan)} onChange=${() => toggle(plan.plan)} />${" "}
          <i class=${`dot ${seriesOf(at + 1)}`}></i>${plan.plan}</label></td>
        <td class="n">${percent(plan.volume)}</td><td class="muted">${differences(current, plan)}</td></tr>`)}</${Table}>
      <${Notes} notes=${found.notes} /></section></div>`;
}

/** How much of all rates a plan takes. */
function Worth({ plan, streams }) {
  if (plan.volume === null)
    return html`<p>Of all rate mixes these nodes could serve at all, how many this placement does is not known:
      ${" "}${streams} streams are more than can be integrated.</p>`;
  return html`<p><b class="large">${percent(plan.volume)}</b>
    ${plan.error ? html` <small>± ${(100 * plan.error).toPrecision(1)} %</small>` : null}${" "}
    of all rate mixes these nodes could serve at all are served by the placement <em>${plan.plan}</em>, without moving anything.</p>`;
}

function Axis({ id, label, found, value, choose }) {
  return html`<label>${label} <select id=${id} value=${value} onChange=${(e) => choose(e.target.value)}>
    ${found.streams.map(({ variable }) => html`<option key=${variable} value=${variable}>${variable}</option>`)}</select></label>`;
}

/** Where one stream makes all the load there is no plane to cut: how far it is on its way. */
function OnlyRate({ of }) {
  const share = of.most_per_s ? Math.min(1, of.rate_per_s / of.most_per_s) : 0;
  return html`<p>Only one stream, <b>${of.variable}</b>, makes load: ${count(of.rate_per_s)} rows/s now${
    of.most_per_s ? html`, and up to <b>${count(of.most_per_s)}</b> until ${of.first_full} is full` : ""}.</p>
    <${Meter} share=${share} label=${`${of.variable}: how far it is to what fits`} />`;
}

function Rise({ stream }) {
  const times = stream.most_per_s && stream.rate_per_s ? `${count(stream.most_per_s / stream.rate_per_s)}×` : "–";
  return html`<tr><td>${stream.variable}</td>
    <td class="n">${count(stream.rate_per_s)}${stream.observed ? "" : html` <small title="no rate was measured; a typical one is taken">typical</small>`}</td>
    <td class="n">${stream.most_per_s === null ? "no limit" : count(stream.most_per_s)}</td>
    <td class="n">${times}</td><td>${stream.first_full || "–"}</td></tr>`;
}

function Notes({ notes }) {
  if (!notes.length) return null;
  return html`<h3>Assumed</h3><ul class="muted">${notes.slice(0, NOTES).map((note) => html`<li key=${note}>${note.slice(0, 200)}</li>`)}
    ${notes.length > NOTES ? html`<li>and ${notes.length - NOTES} more</li>` : null}</ul>`;
}

/** What a plan puts elsewhere than the present one. */
function differences(current, plan) {
  const moved = Object.entries(plan.nodes).filter(([name, node]) => current.nodes[name] !== node);
  if (!moved.length) return "all as it is";
  if (moved.length > FEW) return `${moved.length} of ${Object.keys(plan.nodes).length} elsewhere`;
  return moved.map(([name, node]) => `${name} on ${node}`).join(", ");
}
