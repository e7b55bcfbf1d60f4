// Queries and streams: what they are, how they do, their rows, and rows that could not be used.
import { Empty, State, api, clock, count, html, path, percent, seconds, useEffect, useRef, useState } from "./lib.mjs";
import { store, useStore } from "./store.mjs";
import { Lines } from "./charts.mjs";

const ROWS = 40;

/** The newest rows of a stream, as they come. */
function useRows(name) {
  const [found, setFound] = useState({ rows: [], error: null, ended: false });
  useEffect(() => {
    const over = new AbortController();
    let after = null, rows = [];
    const begin = Date.now() / 1000 - 20;
    (async () => {
      while (!over.signal.aborted) {
        const from = after === null ? `since_s=${begin}` : `after=${after}`;
        try {
          const told = await api(`${path("/api/streams", name, "rows")}?${from}&most_rows=200&wait_s=2`, { signal: over.signal });
          after = told.next;
          rows = [...told.rows.reverse(), ...rows].slice(0, ROWS);
          setFound({ rows, error: null, ended: told.ended });
          if (told.ended && !told.rows.length) return;
        } catch (error) {
          if (over.signal.aborted) return;
          setFound({ rows, error, ended: false });
          await new Promise((done) => setTimeout(done, 2000));
        }
      }
    })();
    return () => over.abort();
  }, [name]);
  return found;
}

function Rows({ stream }) {
  const { rows, error, ended } = useRows(stream.name);
  const columns = stream.columns.map((column) => column.name);
  return html`<section class="card wide"><h2>Live rows <small>${ended ? "it has ended" : "newest first"}</small></h2>
    ${error ? html`<pre class="error">${error.message}</pre>` : null}
    ${rows.length ? html`<div class="scroll rows"><table id="live-rows"><thead><tr>${columns.map((name) => html`<th key=${name}>${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row, at) => html`<tr key=${at}>${columns.map((name) => html`<td key=${name}>${row[name] === null ? html`<i class="muted">null</i>` : String(row[name])}</td>`)}</tr>`)}</tbody></table></div>` : html`<${Empty}>No rows in the last 20 seconds.</${Empty}>`}</section>`;
}

function Letters({ stream, aside }) {
  const [letters, setLetters] = useState([]);
  const total = aside ? Object.values(aside.rows).reduce((sum, n) => sum + n, 0) : 0;
  useEffect(() => { if (total) api(`${path("/api/streams", stream, "dead_letters")}?last=20`).then(setLetters, () => {}); }, [stream, total]);
  if (!total) return null;
  return html`<section class="card wide"><h2>Rows set aside <small>${count(total)}</small></h2><p class="reason">${aside.text}</p><p class="muted">in ${aside.folder}</p>
    <div class="scroll rows"><table><thead><tr><th>kind</th><th>reason</th><th>row</th></tr></thead><tbody>${[...letters].reverse().map((one, at) => html`
      <tr key=${at}><td>${one.kind || ""}</td><td>${one.reason}</td><td><code>${typeof one.row === "string" ? one.row : JSON.stringify(one.row ?? one)}</code></td></tr>`)}</tbody></table></div></section>`;
}

/** A fragment's part of the processor time of all. */
function costShare(name) {
  const spent = store.view.fragments.filter((one) => one.kind === "fragment").map((one) => [one.name, one.measured.cpu_ms || 0]);
  const total = spent.reduce((sum, [, ms]) => sum + ms, 0);
  return total ? (spent.find(([one]) => one === name)?.[1] ?? 0) / total : null;
}

function Facts({ stream, fragment, nowS }) {
  const measured = fragment?.measured || {};
  const gap = measured.watermark_ms == null ? null : nowS - measured.watermark_ms / 1000;
  const newest = measured.latest_latency_s;
  return html`<dl class="facts"><div><dt>state</dt><dd><${State} of=${fragment?.state || "unknown"} /> on ${fragment?.node || "–"}</dd></div>
    <div><dt>latency</dt><dd class=${fragment?.late ? "late" : ""}>${seconds(newest)} <small>p50 ${seconds(measured.latency_p50_s)}, p99 ${seconds(measured.latency_p99_s)}${fragment?.limit_s ? `, limit ${seconds(fragment.limit_s)}` : ""}</small></dd></div>
    <div><dt>watermark</dt><dd>${gap === null ? "–" : html`${seconds(gap)} behind the clock <small>${new Date(measured.watermark_ms).toISOString().replace("T", " ").slice(0, 19)} UTC</small>`}</dd></div>
    <div><dt>rows in</dt><dd>${count(measured.rows_in)} <small>${count(measured.rows_in_per_s)}/s</small></dd></div><div><dt>rows out</dt><dd>${count(measured.rows_out)} <small>${measured.selectivity == null ? "" : `${measured.selectivity.toPrecision(2)} for each in`}</small></dd></div>
    <div><dt>state rows</dt><dd>${count(measured.state_rows)}</dd></div><div><dt>unread</dt><dd>${count(measured.backlog_rows)}</dd></div>
    <div><dt>cost</dt><dd>${percent(costShare(fragment?.name))} <small>of all processor time${measured.cost_us == null ? "" : `, ${measured.cost_us.toFixed(1)} µs a row`}</small></dd></div>
    <div><dt>restarts</dt><dd>${fragment?.restarts ?? "–"}</dd></div><div><dt>goes to</dt><dd>${stream.queries.map((one) => one.sink).join(", ") || "others"}</dd></div>
    <div><dt>read by</dt><dd>${stream.read_by.join(", ") || "nobody here"}</dd></div></dl>`;
}

function One({ stream, act }) {
  const { view, fragments } = useStore();
  const fragment = view.fragments.find((one) => one.name === stream.made_by);
  const series = fragments.get(stream.made_by);
  const aside = view.set_aside.find((one) => one.stream === stream.name);
  return html`<section class="card wide"><h2>${stream.name} <small>${stream.kind === "stream" ? "stream from outside" : `result, of ${stream.submission}`}</small></h2>
      <${Facts} stream=${stream} fragment=${fragment} nowS=${view.at_s} />
      ${fragment?.error ? html`<pre class="error">${fragment.error}</pre>` : null}${(fragment?.notes || []).map((note) => html`<p class="reason">${note}</p>`)}
      <p class="actions">${fragment ? html`<button onClick=${() => act.move(fragment.name)}>Move…</button> ` : null}<button class="danger" onClick=${() => act.drop(stream.submission)}>Drop ${stream.submission}…</button>
        ${stream.queries[0] ? html` <a href=${`#/graph/${encodeURIComponent(stream.queries[0].name)}`}>follow it in the graph</a>` : null}</p></section>
    <section class="card"><h2>${stream.queries.length ? "SQL" : "Columns"}</h2>${stream.queries.map((query) => html`<pre class="sql" key=${query.name}>${query.sql || "written in Python"}</pre>`)}
      <table><thead><tr><th>column</th><th>type</th></tr></thead><tbody>${stream.columns.map((one) => html`<tr key=${one.name}><td>${one.name}${one.name === stream.event_time ? html` <small>event time</small>` : null}</td><td class="muted">${one.type}</td></tr>`)}</tbody></table></section>
    ${stream.kind === "result" && series && series.at.length > 1 ? html`<section class="card"><h2>Latency</h2><${Lines} at=${series.at} lines=${[{ name: "latency", values: series.latency }, ...(fragment?.limit_s ? [{ name: "limit", values: series.at.map(() => fragment.limit_s) }] : [])]} format=${seconds} />
      <h2>Rows per second in</h2><${Lines} at=${series.at} lines=${[{ name: "rows/s", values: series.rate }]} format=${count} height=${120} /></section>` : null}
    <${Letters} stream=${stream.name} aside=${aside} /><${Rows} key=${stream.name} stream=${stream} />`;
}

export function Queries({ rest, act }) {
  const { view, streams } = useStore();
  const [wanted, setWanted] = useState("");
  const list = useRef(null);
  const shown = streams.filter((one) => one.name.toLowerCase().includes(wanted.toLowerCase()))
    .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  const chosen = streams.find((one) => one.name === rest[0] || one.made_by === rest[0]) || streams.find((one) => one.kind === "result") || streams[0];
  if (!streams.length) return html`<section class="card"><h2>Queries</h2><${Empty}>Nothing runs yet. Submit a query, or a deployment file.</${Empty}></section>`;
  const late = new Set(view.fragments.filter((one) => one.late || ["failed", "held back", "unreadable"].includes(one.state)).map((one) => one.name));
  return html`<div class="list-page"><nav class="card list" aria-label="Queries and streams" ref=${list}><input type="search" placeholder="find…" aria-label="Find a query" value=${wanted} onInput=${(e) => setWanted(e.target.value)} />
      ${["result", "stream"].map((kind) => html`<h3 key=${kind}>${kind === "result" ? "Results" : "Streams from outside"}</h3><ul>${shown.filter((one) => one.kind === kind).map((one) => html`<li key=${one.name}><a href=${`#/queries/${encodeURIComponent(one.name)}`} aria-current=${one === chosen ? "true" : null} class=${late.has(one.made_by) ? "late" : ""}>${one.name}</a></li>`)}</ul>`)}</nav>
    <div class="grid two">${chosen ? html`<${One} key=${chosen.name} stream=${chosen} act=${act} />` : null}</div></div>`;
}
