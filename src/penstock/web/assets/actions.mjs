// What people can do: each asks first, says what will happen, and shows what is refused.
import { api, html, path, useEffect, useRef, useState } from "./lib.mjs";
import { Prospect } from "./prospect.mjs";
import { store } from "./store.mjs";

/** A dialog that is open as long as it is shown; Escape closes it. */
export function Dialog({ title, onClose, children }) {
  const box = useRef(null);
  useEffect(() => {
    if (!box.current.open) box.current.showModal();
  }, []);
  return html`<dialog ref=${box} onClose=${onClose} aria-label=${title}>
    <header><h2>${title}</h2><button class="quiet" aria-label="Close" onClick=${onClose}>✕</button></header>
    ${children}</dialog>`;
}

/** The words of the command line; the place that is meant is marked in the line above its carets. */
export function ErrorText({ error }) {
  if (!error) return null;
  const lines = error.message.split("\n");
  return html`<pre class="error" role="alert">${lines.map((line, at) => {
    const below = lines[at + 1] || "";
    const caret = /^(\s*)(\^+)$/.exec(below);
    if (/^\s*\^+$/.test(line)) return null;
    if (!caret) return html`${line}${"\n"}`;
    const [start, length] = [caret[1].length, caret[2].length];
    const end = start + length;
    return html`${line.slice(0, start)}<mark>${line.slice(start, end)}</mark>${line.slice(end)}${"\n"}`;
  })}</pre>`;
}

function useDoing(done) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = async (work) => {
    setBusy(true);
    setError(null);
    try {
      done(await work());
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  return { error, busy, run };
}

export function MoveDialog({ fragment, node, onClose }) {
  const found = store.view.fragments.find((one) => one.name === fragment);
  const nodes = store.view.nodes.filter((one) => one.state === "up" && one.name !== found?.node);
  const [target, setTarget] = useState(node || nodes[0]?.name || "");
  const { error, busy, run } = useDoing(onClose);
  const go = () => run(() => api("/api/moves", {
    method: "POST", json: [{ fragment, node: target, reason: "asked for on the dashboard" }],
  }));
  return html`<${Dialog} title=${`Move ${fragment}`} onClose=${onClose}>
    <label>To node <select id="move-target" value=${target} onChange=${(e) => setTarget(e.target.value)}>
      ${nodes.map((one) => html`<option key=${one.name} value=${one.name}>${one.name} — ${Math.round(100 * one.utilisation)} % used</option>`)}
    </select></label>
    <p>What will happen: ${target || "the node"} rehearses ${fragment} while it goes on
      on ${found?.node || "–"}; then ${found?.node || "–"} ends its batch and lets go, and ${target || "it"} reads the
      state and goes on. No row is lost or comes twice. The balancer may move it again.</p>
    <code class="command">penstock move ${fragment} ${target}</code>
    <${ErrorText} error=${error} />
    <footer><button onClick=${onClose}>Cancel</button>
      <button class="primary" id="move-confirm" disabled=${busy || !target} onClick=${go}>Move to ${target}</button></footer>
  </${Dialog}>`;
}

export function DropDialog({ name, onClose }) {
  const found = store.view.queries.find((one) => one.name === name);
  const { error, busy, run } = useDoing(onClose);
  const go = () => run(() => api(path("/api/queries", name), { method: "DELETE" }));
  return html`<${Dialog} title=${`Drop ${name}`} onClose=${onClose}>
    <p>What will happen: ${found?.fragments.length || 0} fragments and intakes stop
      (${found?.fragments.join(", ")}), and their state and results are deleted. What was written to files,
      tables and topics stays. This cannot be undone.</p>
    <code class="command">penstock drop ${name}</code>
    <${ErrorText} error=${error} />
    <footer><button onClick=${onClose}>Cancel</button>
      <button class="danger" id="drop-confirm" disabled=${busy} onClick=${go}>Drop ${name}</button></footer>
  </${Dialog}>`;
}

const POLICIES = "/api/balance";

/** How the system is balanced, and a change of it. */
export function BalanceDialog({ onClose }) {
  const [now, setNow] = useState(null);
  const [policy, setPolicy] = useState("");
  const [every, setEvery] = useState("");
  const { error, busy, run } = useDoing(onClose);
  useEffect(() => { api(POLICIES).then((found) => { setNow(found); setPolicy(found.policy); }, () => {}); }, []);
  const settings = every.trim() ? { every: every.trim() } : {};
  const go = () => run(() => api(POLICIES, { method: "PUT", json: { policy: policy.trim(), settings } }));
  return html`<${Dialog} title="Balance" onClose=${onClose}>
    <p>${now ? `Now: ${now.text}.` : "…"}</p>
    <label>Policy <input id="balance-policy" autocomplete="off" value=${policy} onInput=${(e) => setPolicy(e.target.value)} /></label>
    <label>Decide every <input id="balance-every" autocomplete="off" placeholder="as usual" size="8" value=${every} onInput=${(e) => setEvery(e.target.value)} /></label>
    <p>What will happen: ${policy.trim() === "off" ? "nothing moves by itself any more; moves under way are finished" : `from now on ${policy || "the policy"} decides which fragments move, with its usual settings but for these`}.
      It holds until somebody says otherwise, whatever files submitted later say.</p>
    <code class="command">penstock balance ${policy}${every.trim() ? ` every=${every.trim()}` : ""}</code>
    <${ErrorText} error=${error} />
    <footer><button onClick=${onClose}>Cancel</button>
      <button class="primary" id="balance-confirm" disabled=${busy || !policy.trim()} onClick=${go}>Balance so</button></footer>
  </${Dialog}>`;
}

const NAMED = 12;

/** What a query can read, the streams from outside first. */
function readable() {
  const names = [...store.streams].sort((a, b) => b.kind.localeCompare(a.kind)).map((one) => one.name);
  if (!names.length) return "There are no streams yet.";
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return `Streams there are: ${names.slice(0, NAMED).join(", ")}${more}.`;
}

export function SubmitDialog({ onClose }) {
  const [name, setName] = useState("");
  const [text, setText] = useState("");
  const [limit, setLimit] = useState("");
  const [start, setStart] = useState("now");
  const { error, busy, run } = useDoing(onClose);
  const [prospect, setProspect] = useState(null);
  const looking = useDoing(setProspect);
  const kind = /^\s*(streams|queries|nodes|placement|balance)\s*:/m.test(text) ? "yaml" : "sql";
  const go = (event) => {
    event.preventDefault();
    run(() => ask(false));
  };
  const ask = (dry) => api("/api/queries", {
    method: "POST",
    json: { name, kind, text, start, max_latency_us: limit.trim() ? Math.round(1e6 * Number(limit)) : null, dry_run: dry },
  });
  return html`<${Dialog} title="Submit a query or a deployment" onClose=${onClose}>
    <form onSubmit=${go}>
      <label>Name <input id="submit-name" required autocomplete="off" value=${name} onInput=${(e) => setName(e.target.value)} /></label>
      <label>SQL, or a deployment file
        <textarea id="submit-text" required rows="9" spellcheck="false" value=${text}
          placeholder=${"SELECT … FROM …"} onInput=${(e) => setText(e.target.value)}></textarea></label>
      <div class="row">
        <label>Latency limit, s <input id="submit-limit" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" title="seconds, as 3 or 0.5" size="6" value=${limit} onInput=${(e) => setLimit(e.target.value)} /></label>
        <label>Counts from <select value=${start} onChange=${(e) => setStart(e.target.value)}>
          <option value="now">now on</option><option value="oldest">the oldest rows kept</option>
          <option value="start">the start</option></select></label>
      </div>
      <p>What will happen: it is read as ${kind === "sql" ? "one query over the streams that run" : "a deployment file"},
        checked, placed on the nodes that are up, and started. ${readable()}</p>
      <${Prospect} of=${prospect} />
      <${ErrorText} error=${error || looking.error} />
      <footer><button type="button" onClick=${onClose}>Cancel</button>
        <button type="button" id="submit-look" disabled=${looking.busy || !name || !text} onClick=${() => looking.run(() => ask(true))}>${looking.busy ? "Looking…" : "Look first"}</button>
        <button class="primary" id="submit-confirm" disabled=${busy}>${busy ? "Submitting…" : "Submit"}</button></footer>
    </form></${Dialog}>`;
}
