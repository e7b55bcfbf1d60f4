// Every move as a bar of its phases, with its reason and what was considered.
import { Empty, Fact, State, Table, api, clock, html, seconds, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const SHOWN = 60;
const WORDS = {
  silence_s: "silence until the lease ended",
  decision_s: "another node chosen",
  release_s: "let go by its node",
  take_over_s: "checkpoint taken over, state read",
  start_s: "query started",
  first_batch_s: "first batch",
};

/** The phases of a move that are known, one after the other. */
export function phases(move, nowS) {
  const spent = move.numbers.spent || move.numbers.phases || {};
  const parts = Object.keys(WORDS)
    .filter((key) => typeof spent[key] === "number")
    .map((key) => ({ name: WORDS[key], kind: key.replace(/_s$/, ""), s: spent[key] }));
  const handed = parts.reduce((sum, part) => sum + part.s, 0);
  if (move.numbers.spent) return parts;
  // Until it was let go of, it went on as before.
  const whole = Math.max((move.ended_s ?? nowS) - move.created_s, handed);
  const first = {
    name: move.is_warm ? "rehearsed on the new node, while it went on" : "prepared, while it went on",
    kind: "rehearsed",
    s: whole - handed,
  };
  return [first, ...parts];
}

function Bar({ move, nowS, most, chosen, choose }) {
  const parts = phases(move, nowS);
  const whole = parts.reduce((sum, part) => sum + part.s, 0);
  const words = (part) => `${part.name} ${seconds(part.s)}`;
  const told = parts.map(words).join(", ");
  const width = (part) => `${Math.max(0.4, (100 * part.s) / most)}%`;
  const numbers = plainNumbers(move.numbers).map(([key, value]) => `${key} ${value}`).join(", ");
  return html`<li><button class="bar-row" aria-pressed=${chosen} onClick=${choose} title=${[move.reason, told, numbers].join("\n")}>
    <time>${clock(move.created_s)}</time>
    <span class="route"><b>${move.unit}</b> ${move.source} → ${move.target}</span><${State} of=${move.state} />
    <span class="bar" role="img" aria-label=${told}>${parts.map((part) => html`<span key=${part.kind}
      class=${`phase ${part.kind}`} style=${{ width: width(part) }} title=${words(part)}></span>`)}</span>
    <span class="n">${seconds(whole)}${move.pause_s === null ? "" : html` <small>paused ${seconds(move.pause_s)}</small>`}</span></button></li>`;
}

/** The numbers that a move rests on and that are no lists, in words; phases are told elsewhere. */
function plainNumbers(numbers) {
  const plain = Object.entries(numbers).filter(([key, value]) => typeof value !== "object" && !(key in WORDS));
  return plain.map(([key, value]) => [key.replaceAll("_", " "), String(value)]);
}

/** The numbers that a move rests on, and what else was considered. */
function Numbers({ of }) {
  const nodes = Object.keys(of.loads_before || {});
  const considered = Object.entries(of.considered || {}).map(([name, load]) => `${name} ${load}`);
  return html`<dl class="facts">${plainNumbers(of).map(([key, value]) => html`<${Fact} key=${key} name=${key}>${value}</${Fact}>`)}</dl>
    ${nodes.length ? html`<h3>Load of nodes, as a share of each</h3>
      <${Table} heads="node, #before, #after">${nodes.map((node) => html`<tr key=${node}><td>${node}</td>
        <td class="n">${of.loads_before[node]}</td><td class="n">${of.loads_after?.[node]}</td></tr>`)}</${Table}>` : null}
    ${considered.length ? html`<h3>Considered, by load in cores</h3><p class="muted">${considered.join(" · ")}</p>` : null}`;
}

export function Moves({ act }) {
  const { view } = useStore();
  const [moves, setMoves] = useState([]);
  const [chosen, setChosen] = useState(null);
  const newest = JSON.stringify(view.moves.map((move) => [move.id, move.state, move.pause_s]));
  useEffect(() => {
    api("/api/moves?last=200").then(setMoves, () => {});
  }, [newest]);
  const nowS = view.at_s;
  const shown = [...moves].reverse();
  const most = Math.max(
    1,
    ...shown.slice(0, SHOWN).map((move) => phases(move, nowS).reduce((sum, part) => sum + part.s, 0)),
  );
  const current = moves.find((move) => move.id === chosen) || shown[0];
  if (!shown.length)
    return html`<section class="card"><h2>Moves</h2>
      <${Empty}>Nothing has been moved yet. <code>penstock move FRAGMENT NODE</code>, or the button on the graph.</${Empty}>
      <p><button id="balance" onClick=${act.balance}>Balance…</button></p></section>`;
  return html`<div class="grid two"><section class="card">
    <div class="toolbar"><h2>Moves <small>${shown.length}</small></h2>
      <button class="small" id="balance" onClick=${act.balance}>Balance…</button></div>
    <p class="keys"><i class="phase rehearsed"></i>rehearsed, while it goes on${" "}
      <i class="phase silence"></i>silence <i class="phase release"></i>let go <i class="phase take_over"></i>state read${" "}
      <i class="phase start"></i>started <i class="phase first_batch"></i>first batch</p>
    <ol class="bars">${shown.slice(0, SHOWN).map((move) => html`<${Bar} key=${move.id} move=${move} nowS=${nowS} most=${most}
      chosen=${move === current} choose=${() => setChosen(move.id)} />`)}</ol></section>
    <section class="card" aria-live="polite"><h2>Move ${current.id}: ${current.unit}</h2>
      <p>${current.source} → ${current.target} at ${clock(current.created_s)}, <${State} of=${current.state} /></p>
      <p class="reason">${current.reason}</p>${current.error ? html`<pre class="error">${current.error}</pre>` : null}
      <table><tbody>${phases(current, nowS).map((part) => html`<tr key=${part.kind}>
        <td><i class=${`phase ${part.kind}`}></i> ${part.name}</td><td class="n">${seconds(part.s)}</td></tr>`)}</tbody></table>
      <${Numbers} of=${current.numbers} />
      <code class="command">penstock explain move ${current.id}</code></section></div>`;
}
