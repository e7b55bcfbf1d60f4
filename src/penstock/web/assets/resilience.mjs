// How much bursting the placement takes: its feasible set, where the rates are, and rivals.
import { Empty, Meter, api, count, html, percent, useEffect, useRef, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const W = 560, H = 400, LEFT = 62, BOTTOM = 40, TOP = 12, RIGHT = 14;

function Cut({ found, shown, trail }) {
  const corners = [...found.plans.flatMap((plan) => (shown.has(plan.plan) ? plan.feasible : []))];
  const at = (name) => found.streams.find((one) => one.variable === name)?.rate_per_s || 0;
  const now = [at(found.x), at(found.y)];
  const most = [0, 1].map((k) => 1.3 * Math.max(1e-9, now[k], ...corners.map((corner) => corner[k])));
  const x = (value) => LEFT + ((W - LEFT - RIGHT) * value) / most[0];
  const y = (value) => H - BOTTOM - ((H - BOTTOM - TOP) * value) / most[1];
  const polygon = (points) => points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return html`<svg class="cut" viewBox=${`0 0 ${W} ${H}`} role="img" aria-label=${`Feasible rates of ${found.x} and ${found.y}; now ${count(now[0])} and ${count(now[1])} rows per second`}>
    ${ticks.map((part) => html`<g class="tick" key=${part}><line x1=${x(part * most[0])} x2=${x(part * most[0])} y1=${TOP} y2=${H - BOTTOM} /><text x=${x(part * most[0])} y=${H - BOTTOM + 15} text-anchor=${part === 1 ? "end" : "middle"}>${count(part * most[0])}</text>
      <line x1=${LEFT} x2=${W - RIGHT} y1=${y(part * most[1])} y2=${y(part * most[1])} /><text x=${LEFT - 6} y=${y(part * most[1]) + 4} text-anchor="end">${count(part * most[1])}</text></g>`)}
    <clipPath id="inside"><rect x=${LEFT} y=${TOP} width=${W - LEFT - RIGHT} height=${H - BOTTOM - TOP} /></clipPath>
    <polygon class="ideal" clip-path="url(#inside)" points=${polygon(found.ideal)}><title>no plan can take more</title></polygon>
    ${found.plans.map((plan, n) => shown.has(plan.plan) ? html`<polygon key=${plan.plan} class=${n === 0 ? "current" : `rival s${(n % 8) + 1}`} points=${polygon(plan.feasible)}><title>${plan.plan}</title></polygon>` : null)}
    <polyline class="trail" points=${polygon(trail.filter((one) => one[0] <= most[0] && one[1] <= most[1]))} />
    <circle class="now" cx=${x(now[0])} cy=${y(now[1])} r="5"><title>now</title></circle>
    <text class="axis" x=${(W + LEFT) / 2} y=${H - 6} text-anchor="middle">${found.x}, rows/s</text>
    <text class="axis" transform=${`translate(13,${(H - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">${found.y}, rows/s</text></svg>`;
}

function Rises({ found }) {
  return html`<table><thead><tr><th>stream</th><th class="n">rows/s now</th><th class="n">alone up to</th><th class="n">times</th><th>then full</th></tr></thead><tbody>${found.streams.map((one) => html`
    <tr key=${one.variable}><td>${one.variable}</td><td class="n">${count(one.rate_per_s)}${one.observed ? "" : html` <small title="no rate was measured; a typical one is taken">typical</small>`}</td><td class="n">${one.most_per_s === null ? "no limit" : count(one.most_per_s)}</td>
      <td class="n">${one.most_per_s && one.rate_per_s ? `${count(one.most_per_s / one.rate_per_s)}×` : "–"}</td><td>${one.first_full || "–"}</td></tr>`)}</tbody></table>`;
}

/** Where one stream makes all the load there is no plane to cut: how far it is on its way. */
function OnlyRate({ of }) {
  const share = of.most_per_s ? Math.min(1, of.rate_per_s / of.most_per_s) : 0;
  return html`<p>Only one stream, <b>${of.variable}</b>, makes load: ${count(of.rate_per_s)} rows/s now${of.most_per_s ? html`, and up to <b>${count(of.most_per_s)}</b> until ${of.first_full} is full` : ""}.</p>
    <${Meter} share=${share} label=${`${of.variable}: how far it is to what fits`} />`;
}

export function ResiliencePage() {
  const { view } = useStore();
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [axes, setAxes] = useState(["", ""]);
  const [rivals, setRivals] = useState(new Set());
  const trail = useRef([]), asking = useRef(null);
  const turn = Math.floor(view.at_s / 3);
  useEffect(() => {
    const asked = new URLSearchParams(Object.entries({ x: axes[0], y: axes[1] }).filter(([, name]) => name));
    if (asking.current === String(asked)) return; // The first answer takes a while.
    asking.current = String(asked);
    api(`/api/resilience?${asked}`).finally(() => { asking.current = null; }).then((one) => {
      const at = (name) => one.streams.find((stream) => stream.variable === name)?.rate_per_s || 0;
      trail.current = [...trail.current.slice(-60), [at(one.x), at(one.y)]];
      setFound(one); setError(null);
    }, setError);
  }, [turn, axes]);
  const choose = (k, name) => { trail.current = []; const next = [found.x, found.y]; next[k] = name; if (next[0] === next[1]) next[1 - k] = [found.x, found.y][k]; setAxes(next); };
  if (error) return html`<section class="card"><h2>Resilience</h2><pre class="error">${error.message}</pre></section>`;
  if (!found) return html`<section class="card"><h2>Resilience</h2><p class="empty">Planning…</p></section>`;
  if (!found.plans.length) return html`<section class="card"><h2>Resilience</h2><${Empty}>${found.notes.join("; ") || "Nothing runs yet."}</${Empty}></section>`;
  const [current, ...others] = found.plans, shown = new Set([current.plan, ...rivals]);
  const toggle = (name) => { const next = new Set(rivals); if (!next.delete(name)) next.add(name); setRivals(next); };
  return html`<div class="grid two"><section class="card"><h2>Rates that fit</h2>
      ${current.volume === null ? html`<p>Of all rate mixes these nodes could serve at all, how many this placement does is not known: ${found.streams.length} streams are more than can be integrated.</p>` : html`<p><b class="large">${percent(current.volume)}</b>${current.error ? html` <small>± ${(100 * current.error).toPrecision(1)} %</small>` : null} of all rate mixes these nodes could serve at all are served by the placement <em>${current.plan}</em>, without moving anything.</p>`}
      ${found.x !== found.y ? html`<div class="toolbar"><label>Across <select id="axis-x" value=${found.x} onChange=${(e) => choose(0, e.target.value)}>${found.streams.map((one) => html`<option key=${one.variable} value=${one.variable}>${one.variable}</option>`)}</select></label>
        <label>Up <select id="axis-y" value=${found.y} onChange=${(e) => choose(1, e.target.value)}>${found.streams.map((one) => html`<option key=${one.variable} value=${one.variable}>${one.variable}</option>`)}</select></label></div>
      <${Cut} found=${found} shown=${shown} trail=${trail.current} />` : html`<${OnlyRate} of=${found.streams[0]} />`}
      <p class="keys"><i class="current"></i>as it runs <i class="ideal"></i>no plan can take more <i class="now"></i>now</p></section>
    <section class="card"><h2>How far each stream could rise alone</h2><div class="scroll rises"><${Rises} found=${found} /></div>
      <h2 class="apart">Rivals</h2><table><thead><tr><th>plan</th><th class="n">of ideal</th><th>puts</th></tr></thead><tbody>${others.map((plan, n) => html`<tr key=${plan.plan}><td class="nowrap"><label><input type="checkbox" checked=${rivals.has(plan.plan)} onChange=${() => toggle(plan.plan)} /> <i class=${`dot s${((n + 1) % 8) + 1}`}></i> ${plan.plan}</label></td>
        <td class="n">${plan.volume === null ? "–" : percent(plan.volume)}</td><td class="muted">${differences(current, plan)}</td></tr>`)}</tbody></table>
      ${found.notes.length ? html`<h3>Assumed</h3><ul class="muted">${found.notes.slice(0, 5).map((note) => html`<li key=${note}>${note.slice(0, 200)}</li>`)}${found.notes.length > 5 ? html`<li>and ${found.notes.length - 5} more</li>` : null}</ul>` : null}</section></div>`;
}

function differences(current, plan) {
  const moved = Object.entries(plan.nodes).filter(([name, node]) => current.nodes[name] !== node);
  if (!moved.length) return "all as it is";
  const told = moved.slice(0, 4).map(([name, node]) => `${name} on ${node}`).join(", ");
  return moved.length > 4 ? `${told} and ${moved.length - 4} more` : told;
}
