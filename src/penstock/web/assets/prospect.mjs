// What would come of a query before it is submitted: what it shares, where it goes, whom it touches.
import { Table, html, percent, seconds } from "./lib.mjs";

export function Prospect({ of }) {
  if (!of) return null;
  return html`<section class="prospect" aria-live="polite"><h3>What would come of it</h3>
    ${of.admission ? html`<${Admission} of=${of.admission} />` : null}
    ${of.sharing ? html`<${Sharing} of=${of.sharing} />` : null}</section>`;
}

function Admission({ of }) {
  return html`<p><b class=${of.fits ? "well" : "late"}>${of.fits ? "It fits" : "It does not fit"}</b>${latencies(of)}. ${of.why.join("; ")}</p>
    ${Object.keys(of.places).length ? html`<p>It goes to ${places(of)}.</p>` : null}
    ${of.others.length
      ? html`<${Table} heads="touches, #now, #then, #limit">${of.others.map((other) => html`<tr key=${other.query}><td>${other.query}</td>
          <td class="n">${seconds(other.before_s)}</td><td class="n">${seconds(other.after_s)}</td><td class="n">${seconds(other.limit_s)}</td></tr>`)}</${Table}>`
      : html`<p class="muted">No other query would be slower.</p>`}
    ${of.help.map((text) => html`<p class="reason" key=${text}>${text}</p>`)}`;
}

function latencies({ projected_s: projected, limit_s: limit }) {
  const told = projected === null ? "" : `: results after ${seconds(projected)}`;
  return limit === null ? told : `${told}, limit ${seconds(limit)}`;
}

function places({ places: nodes, loads }) {
  const told = Object.entries(nodes).map(([name, node]) => `${node} (${name})`).join(", ");
  const used = Object.entries(loads).map(([node, load]) => `${node} ${percent(load)}`).join(", ");
  return used ? `${told}; load then ${used}` : told;
}

function Sharing({ of }) {
  const shared = of.shared.map(read).join(", ");
  return html`${shared
      ? html`<p>It shares ${shared}: ${of.saved.length} of ${of.operators} operators need not run again.</p>`
      : html`<p class="muted">Nothing of what it computes runs already.</p>`}
    ${of.notes.map((text) => html`<p class="reason" key=${text}>${text}</p>`)}`;
}

function read({ stream, submission, is_sliced: sliced, rest }) {
  const checked = rest === null ? "" : `, with a residual filter: ${rest}`;
  return `${stream} of ${submission}${sliced ? " (slices of its windows)" : ""}${checked}`;
}
