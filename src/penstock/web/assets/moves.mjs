// Every move as a bar of its phases, with its reason and what was considered.
import { Empty, State, api, clock, html, seconds, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const WORDS = {
  silence_s: "silence until the lease ended", decision_s: "another node chosen", release_s: "let go by its node",
  take_over_s: "checkpoint taken over, state read", start_s: "query started", first_batch_s: "first batch",
};

/** The phases of a move that are known, one after the other. */
export function phases(move, nowS) {
  const spent = move.numbers.spent || move.numbers.phases || {};
  const parts = Object.keys(WORDS).filter((key) => typeof spent[key] === "number")
    .map((key) => ({ name: WORDS[key], kind: key.replace(/_s$/, ""), s: spent[key] }));
  const handed = parts.reduce((sum, one) => sum + one.s, 0);
  if (move.numbers.spent) return parts;
  // Until it was let go of, it went on as before.
  const whole = Math.max((move.ended_s ?? nowS) - move.created_s, handed);
  const first = { name: move.is_warm ? "rehearsed on the new node, while it went on" : "prepared, while it went on", kind: "rehearsed", s: whole - handed };
  return [first, ...parts];
}

function Bar({ move, nowS, most, chosen, choose }) {
  const parts = phases(move, nowS);
  const whole = parts.reduce((sum, one) => sum + one.s, 0);
  const told = parts.map((one) => `${one.name} ${seconds(one.s)}`).join(", ");
  return html`<li><button class="bar-row" aria-pressed=${chosen} onClick=${choose} title=${`${move.reason}\n${told}`}>
    <time>${clock(move.created_s)}</time>
    <span class="route"><b>${move.unit}</b> ${move.source} → ${move.target}</span><${State} of=${move.state} />
    <span class="bar" role="img" aria-label=${told}>${parts.map((one) => html`<span key=${one.kind} class=${`phase ${one.kind}`} style=${{ width: `${Math.max(0.4, (100 * one.s) / most)}%` }} title=${`${one.name} ${seconds(one.s)}`}></span>`)}</span>
    <span class="n">${seconds(whole)}${move.pause_s === null ? "" : html` <small>paused ${seconds(move.pause_s)}</small>`}</span></button></li>`;
}

function Numbers({ of }) {
  const plain = Object.entries(of).filter(([key, value]) => typeof value !== "object" && !(key in WORDS));
  const nodes = Object.keys(of.loads_before || {});
  const considered = Object.entries(of.considered || {});
  return html`<dl class="facts">${plain.map(([key, value]) => html`<div key=${key}><dt>${key.replaceAll("_", " ")}</dt><dd>${String(value)}</dd></div>`)}</dl>
    ${nodes.length ? html`<h3>Load of nodes, as a share of each</h3><table><thead><tr><th>node</th><th class="n">before</th><th class="n">after</th></tr></thead>
      <tbody>${nodes.map((node) => html`<tr key=${node}><td>${node}</td><td class="n">${of.loads_before[node]}</td><td class="n">${of.loads_after?.[node]}</td></tr>`)}</tbody></table>` : null}
    ${considered.length ? html`<h3>Considered, by load in cores</h3><p class="muted">${considered.map(([name, load]) => `${name} ${load}`).join(" · ")}</p>` : null}`;
}

export function Moves({ act }) {
  const { view } = useStore();
  const [moves, setMoves] = useState([]);
  const [chosen, setChosen] = useState(null);
  const newest = JSON.stringify(view.moves.map((one) => [one.id, one.state, one.pause_s]));
  useEffect(() => { api("/api/moves?last=200").then(setMoves, () => {}); }, [newest]);
  const nowS = view.at_s;
  const shown = [...moves].reverse();
  const most = Math.max(1, ...shown.slice(0, 60).map((move) => phases(move, nowS).reduce((sum, one) => sum + one.s, 0)));
  const one = moves.find((move) => move.id === chosen) || shown[0];
  if (!shown.length) return html`<section class="card"><h2>Moves</h2><${Empty}>Nothing has been moved yet. <code>penstock move FRAGMENT NODE</code>, or the button on the graph.</${Empty}><p><button id="balance" onClick=${act.balance}>Balance…</button></p></section>`;
  return html`<div class="grid two"><section class="card"><div class="toolbar"><h2>Moves <small>${shown.length}</small></h2><button class="small" id="balance" onClick=${act.balance}>Balance…</button></div>
    <p class="keys"><i class="phase rehearsed"></i>rehearsed, while it goes on <i class="phase silence"></i>silence <i class="phase release"></i>let go <i class="phase take_over"></i>state read <i class="phase start"></i>started <i class="phase first_batch"></i>first batch</p>
    <ol class="bars">${shown.slice(0, 60).map((move) => html`<${Bar} key=${move.id} move=${move} nowS=${nowS} most=${most} chosen=${move === one} choose=${() => setChosen(move.id)} />`)}</ol></section>
    <section class="card" aria-live="polite"><h2>Move ${one.id}: ${one.unit}</h2>
      <p>${one.source} → ${one.target} at ${clock(one.created_s)}, <${State} of=${one.state} /></p>
      <p class="reason">${one.reason}</p>${one.error ? html`<pre class="error">${one.error}</pre>` : null}
      <table><tbody>${phases(one, nowS).map((part) => html`<tr key=${part.kind}><td><i class=${`phase ${part.kind}`}></i> ${part.name}</td><td class="n">${seconds(part.s)}</td></tr>`)}</tbody></table>
      <${Numbers} of=${one.numbers} /><code class="command">penstock explain move ${one.id}</code></section></div>`;
}
