// What would come of a query before it is submitted: what it shares, where it goes, whom it touches.
import { html, percent, seconds } from "./lib.mjs";

export function Prospect({ of }) {
  if (!of) return null;
  const { sharing, admission } = of;
  return html`<section class="prospect" aria-live="polite"><h3>What would come of it</h3>
    ${admission ? html`<p><b class=${admission.fits ? "well" : "late"}>${admission.fits ? "It fits" : "It does not fit"}</b>${admission.projected_s === null ? "" : `: results after ${seconds(admission.projected_s)}`}${admission.limit_s === null ? "" : `, limit ${seconds(admission.limit_s)}`}. ${admission.why.join("; ")}</p>
      ${Object.keys(admission.places).length ? html`<p>It goes to ${Object.entries(admission.places).map(([name, node]) => `${node} (${name})`).join(", ")}${Object.keys(admission.loads).length ? `; load then ${Object.entries(admission.loads).map(([node, load]) => `${node} ${percent(load)}`).join(", ")}` : ""}.</p>` : null}
      ${admission.others.length ? html`<table><thead><tr><th>touches</th><th class="n">now</th><th class="n">then</th><th class="n">limit</th></tr></thead><tbody>${admission.others.map((one) => html`
        <tr key=${one.query}><td>${one.query}</td><td class="n">${seconds(one.before_s)}</td><td class="n">${seconds(one.after_s)}</td><td class="n">${seconds(one.limit_s)}</td></tr>`)}</tbody></table>` : html`<p class="muted">No other query would be slower.</p>`}
      ${admission.help.map((text) => html`<p class="reason" key=${text}>${text}</p>`)}` : null}
    ${sharing?.shared.length ? html`<p>It shares ${sharing.shared.map((one) => `${one.stream} of ${one.submission}`).join(", ")}: ${sharing.saved.length} of ${sharing.operators} operators need not run again.</p>` : html`<p class="muted">It shares nothing that runs already.</p>`}
    ${(sharing?.notes || []).map((text) => html`<p class="reason" key=${text}>${text}</p>`)}</section>`;
}
