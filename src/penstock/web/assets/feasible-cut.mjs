// The rates that fit, cut along two streams: what no plan can take, what plans take, where the rates are.
import { count, html } from "./lib.mjs";

const W = 560, H = 400, LEFT = 62, BOTTOM = 40, TOP = 12, RIGHT = 14;
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const ROOM = 1.3;

/** The plans that are `shown` over each other; `trail` is where the rates have been. */
export function Cut({ found, shown, trail }) {
  const plans = found.plans.map((plan, at) => ({ ...plan, at })).filter((plan) => shown.has(plan.plan));
  const now = [rate(found, found.x), rate(found, found.y)];
  const corners = plans.flatMap((plan) => plan.feasible);
  const most = [0, 1].map((axis) => ROOM * Math.max(1e-9, now[axis], ...corners.map((corner) => corner[axis])));
  const x = (value) => LEFT + ((W - LEFT - RIGHT) * value) / most[0];
  const y = (value) => H - BOTTOM - ((H - BOTTOM - TOP) * value) / most[1];
  const polygon = (points) => points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
  const told = `Feasible rates of ${found.x} and ${found.y}; now ${count(now[0])} and ${count(now[1])} rows per second`;
  return html`<svg class="cut" viewBox=${`0 0 ${W} ${H}`} role="img" aria-label=${told}>
    ${TICKS.map((part) => html`<${Tick} key=${part} x=${x(part * most[0])} y=${y(part * most[1])}
      rates=${most.map((value) => count(part * value))} isLast=${part === 1} />`)}
    <clipPath id="inside"><rect x=${LEFT} y=${TOP} width=${W - LEFT - RIGHT} height=${H - BOTTOM - TOP} /></clipPath>
    <polygon class="ideal" clip-path="url(#inside)" points=${polygon(found.ideal)}><title>no plan can take more</title></polygon>
    ${plans.map((plan) => html`<polygon key=${plan.plan} class=${plan.at ? `rival ${seriesOf(plan.at)}` : "current"}
      points=${polygon(plan.feasible)}><title>${plan.plan}</title></polygon>`)}
    <polyline class="trail" points=${polygon(trail.filter((point) => point[0] <= most[0] && point[1] <= most[1]))} />
    <circle class="now" cx=${x(now[0])} cy=${y(now[1])} r="5"><title>now</title></circle>
    <text class="axis" x=${(W + LEFT) / 2} y=${H - 6} text-anchor="middle">${found.x}, rows/s</text>
    <text class="axis" transform=${`translate(13,${(H - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">${found.y}, rows/s</text></svg>`;
}

function Tick({ x, y, rates, isLast }) {
  return html`<g class="tick"><line x1=${x} x2=${x} y1=${TOP} y2=${H - BOTTOM} /><line x1=${LEFT} x2=${W - RIGHT} y1=${y} y2=${y} />
    <text x=${x} y=${H - BOTTOM + 15} text-anchor=${isLast ? "end" : "middle"}>${rates[0]}</text>
    <text x=${LEFT - 6} y=${y + 4} text-anchor="end">${rates[1]}</text></g>`;
}

/** The rate of a stream as it is now. */
export const rate = (found, name) => found.streams.find((stream) => stream.variable === name)?.rate_per_s || 0;

/** The class that gives a plan its colour. */
export const seriesOf = (at) => `s${(at % 8) + 1}`;
