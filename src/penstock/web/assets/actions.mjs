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
  const found = store.view.fragments.find(({ name }) => name === fragment);
  const nodes = store.view.nodes.filter(({ name, state }) => state === "up" && name !== found?.node);
  const [target, setTarget] = useState(node || nodes[0]?.name || "");
  const { error, busy, run } = useDoing(onClose);
  const go = () =>
    run(() =>
      api("/api/moves", {
        method: "POST",
        json: [{ fragment, node: target, reason: "asked for on the dashboard" }],
      }),
    );
  return html`<${Dialog} title=${`Move ${fragment}`} onClose=${onClose}>
    <label>To node <select id="move-target" value=${target} onChange=${(e) => setTarget(e.target.value)}>
      ${nodes.map((place) => html`<option key=${place.name} value=${place.name}>
        ${place.name} — ${Math.round(100 * place.utilisation)} % used</option>`)}
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

/** The other submissions that read what one computes. */
function othersThatRead(name) {
  const mine = new Set(store.graph.filter((unit) => unit.submission === name).map((unit) => unit.gives));
  const readers = store.graph.filter(
    (unit) => unit.submission !== name && unit.reads.some((stream) => mine.has(stream)),
  );
  return [...new Set(readers.map((unit) => unit.submission))];
}

export function DropDialog({ name, onClose }) {
  const found = store.view.queries.find((query) => query.name === name);
  const [keeps, setKeeps] = useState(false);
  const { error, busy, run } = useDoing(onClose);
  const go = () => run(() => api(`${path("/api/queries", name)}?keep_data=${keeps}`, { method: "DELETE" }));
  const others = othersThatRead(name);
  const units = found?.fragments || [];
  return html`<${Dialog} title=${`Drop ${name}`} onClose=${onClose}>
    <p>What will happen: ${units.join(", ") || "nothing that runs"} stop${units.length === 1 ? "s" : ""}, and
      their state and results are ${keeps ? "put aside" : "deleted"}. What was written to files, tables and topics stays.
      ${others.length ? ` It is read by ${others.join(", ")}: what they share of it goes on;` : ""}
      ${others.length ? " whoever reads its result by name has to be dropped first." : ""}
      ${keeps ? "" : " This cannot be undone."}</p>
    <label class="check">
      <input type="checkbox" id="drop-keep" checked=${keeps} onChange=${(e) => setKeeps(e.target.checked)} />${" "}
      Put the data aside instead of deleting it</label>
    <code class="command">penstock drop ${name}${keeps ? " --keep-data" : ""}</code>
    <${ErrorText} error=${error} />
    <footer><button onClick=${onClose}>Cancel</button>
      <button class="danger" id="drop-confirm" disabled=${busy} onClick=${go}>Drop ${name}</button></footer>
  </${Dialog}>`;
}

/** Settings as the command line takes them: words of the form key=value. */
function settingsOf(written) {
  return Object.fromEntries(
    written
      .trim()
      .split(/\s+/)
      .filter(Boolean)
      .map((word) => {
        const [key, value] = word.split(/=(.*)/s);
        if (!key || !value) throw new Error(`${word} is no setting. Write KEY=VALUE, for example every=5s.`);
        return [key, value];
      }),
  );
}

function outcomeOf(policy) {
  if (policy === "off") return "nothing moves by itself any more; moves under way are finished";
  return `from now on ${policy || "the policy"} decides which fragments move, with its usual settings but for these`;
}

/** How the system is balanced, and a change of it. */
export function BalanceDialog({ onClose }) {
  const [now, setNow] = useState(null);
  const [policy, setPolicy] = useState("");
  const [settings, setSettings] = useState("");
  const { error, busy, run } = useDoing(onClose);
  useEffect(() => {
    api("/api/balance").then(
      (found) => {
        setNow(found);
        setPolicy(found.policy);
      },
      () => {},
    );
  }, []);
  const go = () =>
    run(async () =>
      api("/api/balance", { method: "PUT", json: { policy: policy.trim(), settings: settingsOf(settings) } }),
    );
  const words = ["penstock balance", policy.trim(), settings.trim()].filter(Boolean).join(" ");
  return html`<${Dialog} title="Balance" onClose=${onClose}>
    <p>${now ? `Now: ${now.text}.` : "…"}</p>
    <label>Policy <input id="balance-policy" autocomplete="off" value=${policy} onInput=${(e) => setPolicy(e.target.value)} /></label>
    <label>Settings <input id="balance-settings" autocomplete="off" placeholder="as usual; or every=5s patience=3"
      value=${settings} onInput=${(e) => setSettings(e.target.value)} /></label>
    <p>What will happen: ${outcomeOf(policy.trim())}.
      It holds until somebody says otherwise, whatever files submitted later say.</p>
    <code class="command">${words}</code>
    <${ErrorText} error=${error} />
    <footer><button onClick=${onClose}>Cancel</button>
      <button class="primary" id="balance-confirm" disabled=${busy || !policy.trim()} onClick=${go}>Balance so</button></footer>
  </${Dialog}>`;
}

const NAMED = 12;

/** What a query can read, the streams from outside first. */
function readable() {
  const names = [...store.streams].sort((a, b) => b.kind.localeCompare(a.kind)).map((stream) => stream.name);
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
  const ask = (dry) =>
    api("/api/queries", {
      method: "POST",
      json: {
        name,
        kind,
        text,
        start,
        max_latency_us: limit.trim() ? Math.round(1e6 * Number(limit)) : null,
        dry_run: dry,
      },
    });
  return html`<${Dialog} title="Submit a query or a deployment" onClose=${onClose}>
    <form onSubmit=${go}>
      <label>Name <input id="submit-name" required autocomplete="off" value=${name} onInput=${(e) => setName(e.target.value)} /></label>
      <label>SQL, or a deployment file
        <textarea id="submit-text" required rows="9" spellcheck="false" value=${text}
          placeholder=${"SELECT … FROM …"} onInput=${(e) => setText(e.target.value)}></textarea></label>
      <div class="row">
        <label>Latency limit, s <input id="submit-limit" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" size="6"
          title="seconds, as 3 or 0.5" value=${limit} onInput=${(e) => setLimit(e.target.value)} /></label>
        <label>Counts from <select value=${start} onChange=${(e) => setStart(e.target.value)}>
          <option value="now">now on</option><option value="oldest">the oldest rows kept</option>
          <option value="start">the start</option></select></label>
      </div>
      <p>What will happen: it is read as ${kind === "sql" ? "one query over the streams that run" : "a deployment file"},
        checked, placed on the nodes that are up, and started. ${readable()}</p>
      <${Prospect} of=${prospect} />
      <${ErrorText} error=${error || looking.error} />
      <footer><button type="button" onClick=${onClose}>Cancel</button>
        <button type="button" id="submit-look" disabled=${looking.busy || !name || !text} onClick=${() => looking.run(() => ask(true))}>
          ${looking.busy ? "Looking…" : "Look first"}</button>
        <button class="primary" id="submit-confirm" disabled=${busy}>
          ${busy ? "Submitting…" : "Submit"}</button></footer>
    </form></${Dialog}>`;
}
