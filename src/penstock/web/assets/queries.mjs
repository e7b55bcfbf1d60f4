// Queries and streams: what they are, how they do, their rows, and rows that could not be used.
import { Empty, Fact, State, Table, api, count, html, path, percent, seconds, useEffect, useState } from "./lib.mjs";
import { store, useStore } from "./store.mjs";
import { Lines } from "./charts.mjs";

const ROWS = 40;
const LATELY_S = 20;

/** The newest rows of a stream, as they come. */
function useRows(name) {
  const [found, setFound] = useState({ rows: [], error: null, ended: false });
  useEffect(() => {
    const over = new AbortController();
    let after = null,
      rows = [];
    const begin = store.view.at_s - LATELY_S; // By the controller's clock.
    (async () => {
      while (!over.signal.aborted) {
        const from = after === null ? `since_s=${begin}` : `after=${after}`;
        try {
          const told = await api(`${path("/api/streams", name, "rows")}?${from}&most_rows=200&wait_s=2`, {
            signal: over.signal,
          });
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
    ${rows.length
      ? html`<div class="scroll rows"><table id="live-rows">
          <thead><tr>${columns.map((name) => html`<th key=${name}>${name}</th>`)}</tr></thead>
          <tbody>${rows.map((row, at) => html`<tr key=${at}>${columns.map((name) => html`<td key=${name}><${Value} of=${row[name]} /></td>`)}</tr>`)}</tbody>
        </table></div>`
      : html`<${Empty}>No rows in the last ${LATELY_S} seconds.</${Empty}>`}</section>`;
}

function Value({ of }) {
  return of === null ? html`<i class="muted">null</i>` : String(of);
}

/** Rows that could not be used, the newest first, and why. */
function Letters({ stream, aside }) {
  const [letters, setLetters] = useState([]);
  const total = aside ? Object.values(aside.rows).reduce((sum, n) => sum + n, 0) : 0;
  useEffect(() => {
    if (total) api(`${path("/api/streams", stream, "dead_letters")}?last=20`).then(setLetters, () => {});
  }, [stream, total]);
  if (!total) return null;
  const written = (letter) => (typeof letter.row === "string" ? letter.row : JSON.stringify(letter.row ?? letter));
  return html`<section class="card wide letters"><h2>Rows set aside <small>${count(total)}</small></h2>
    <p class="reason">${aside.text}</p><p class="muted">in ${aside.folder}</p>
    <div class="rows"><${Table} heads="kind, reason, row">${[...letters].reverse().map((letter, at) => html`<tr key=${at}>
      <td>${letter.kind || ""}</td><td>${letter.reason}</td><td><code>${written(letter)}</code></td></tr>`)}</${Table}></div></section>`;
}

function Facts({ stream, fragment }) {
  return html`<dl class="facts">
    <${Fact} name="state"><${State} of=${fragment?.state || "unknown"} /> on ${fragment?.node || "–"}</${Fact}>
    ${stream.kind === "result" ? html`<${Measured} fragment=${fragment} />` : null}
    <${Fact} name="restarts">${fragment?.restarts ?? "–"}</${Fact}>
    ${stream.queries.length ? html`<${Fact} name="goes to">${stream.queries.map((query) => query.sink).join(", ")}</${Fact}>` : null}
    <${Fact} name="read by">${stream.read_by.join(", ") || "nobody here"}</${Fact}></dl>`;
}

/** What is measured of a result; of a stream from outside only its readers know. */
function Measured({ fragment }) {
  const measured = fragment?.measured || {};
  const limit = fragment?.limit_s ? `, limit ${seconds(fragment.limit_s)}, ${percent(fragment.limit_share)} of it used` : "";
  const gap = fragment?.watermark_gap_s;
  const moment = gap == null ? "" : new Date(measured.watermark_ms).toISOString().replace("T", " ").slice(0, 19);
  return html`
    <${Fact} name="latency" isLate=${fragment?.late}>${seconds(measured.latest_latency_s)}${" "}
      <small>p50 ${seconds(measured.latency_p50_s)}, p99 ${seconds(measured.latency_p99_s)}${limit}</small></${Fact}>
    <${Fact} name="watermark">${gap == null ? "–" : html`${seconds(gap)} behind the clock <small>${moment} UTC</small>`}</${Fact}>
    <${Fact} name="rows in">${count(measured.rows_in)} <small>${count(measured.rows_in_per_s)}/s</small></${Fact}>
    <${Fact} name="rows out">${count(measured.rows_out)}${" "}
      <small>${measured.selectivity == null ? "" : `${measured.selectivity.toPrecision(2)} for each in`}</small></${Fact}>
    <${Fact} name="state rows">${count(measured.state_rows)}</${Fact}>
    <${Fact} name="unread">${count(measured.backlog_rows)}</${Fact}>
    <${Fact} name="cost">${percent(fragment?.cpu_share)}${" "}
      <small>of all processor time${measured.cost_us == null ? "" : `, ${measured.cost_us.toFixed(1)} µs a row`}</small></${Fact}>`;
}

function StreamCards({ stream, act }) {
  const { view, fragments } = useStore();
  const fragment = view.fragments.find((candidate) => candidate.name === stream.made_by);
  const series = fragments.get(stream.made_by);
  const aside = view.set_aside.find((candidate) => candidate.stream === stream.name);
  const [query] = stream.queries;
  return html`<section class="card wide">
      <h2>${stream.name} <small>${stream.kind === "stream" ? "stream from outside" : `result, of ${stream.submission}`}</small></h2>
      <${Facts} stream=${stream} fragment=${fragment} />
      ${fragment?.error ? html`<pre class="error">${fragment.error}</pre>` : null}
      ${(fragment?.notes || []).map((note) => html`<p class="reason" key=${note}>${note}</p>`)}
      <p class="actions">${fragment ? html`<button onClick=${() => act.move(fragment.name)}>Move…</button> ` : null}
        <button class="danger" id="drop" onClick=${() => act.drop(stream.submission)}>Drop ${stream.submission}…</button>
        ${query ? html` <a href=${`#/graph/${encodeURIComponent(query.name)}`}>follow it in the graph</a>` : null}</p></section>
    <${Columns} stream=${stream} />
    ${stream.kind === "result" && series?.at.length > 1 ? html`<${Charts} series=${series} limit=${fragment?.limit_s} />` : null}
    <${Letters} stream=${stream.name} aside=${aside} /><${Rows} key=${stream.name} stream=${stream} />`;
}

function Columns({ stream }) {
  return html`<section class="card"><h2>${stream.queries.length ? "SQL" : "Columns"}</h2>
    ${stream.queries.map((query) => html`<pre class="sql" key=${query.name}>${query.sql || "written in Python"}</pre>`)}
    <${Table} heads="column, type">${stream.columns.map(({ name, type }) => html`<tr key=${name}>
      <td>${name}${name === stream.event_time ? html` <small>event time</small>` : null}</td><td class="muted">${type}</td></tr>`)}</${Table}></section>`;
}

function Charts({ series, limit }) {
  const latency = [{ name: "latency", values: series.latency }];
  if (limit) latency.push({ name: "limit", values: series.at.map(() => limit) });
  return html`<section class="card"><h2>Latency</h2><${Lines} at=${series.at} lines=${latency} format=${seconds} />
    <h2 class="apart">Rows per second in</h2>
    <${Lines} at=${series.at} lines=${[{ name: "rows/s", values: series.rate }]} format=${count} height=${120} /></section>`;
}

const KINDS = { result: "Results", stream: "Streams from outside" };
const BAD = ["failed", "held back", "unreadable"];

/** All streams by their names, those in trouble marked. */
function List({ chosen }) {
  const { view, streams } = useStore();
  const [wanted, setWanted] = useState("");
  const shown = streams
    .filter((stream) => stream.name.toLowerCase().includes(wanted.toLowerCase()))
    .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  const troubled = view.fragments.filter((fragment) => fragment.late || BAD.includes(fragment.state));
  const marked = new Set(troubled.map((fragment) => fragment.name));
  return html`<nav class="card list" aria-label="Queries and streams">
    <input type="search" placeholder="find…" aria-label="Find a query" value=${wanted} onInput=${(e) => setWanted(e.target.value)} />
    ${Object.entries(KINDS).map(([kind, title]) => html`<h3 key=${kind}>${title}</h3>
      <ul>${shown.filter((stream) => stream.kind === kind).map((stream) => html`<li key=${stream.name}>
        <a href=${`#/queries/${encodeURIComponent(stream.name)}`} aria-current=${stream === chosen ? "true" : null}
          class=${marked.has(stream.made_by) ? "late" : ""}>${stream.name}</a></li>`)}</ul>`)}</nav>`;
}

export function Queries({ rest, act }) {
  const { streams } = useStore();
  if (!streams.length)
    return html`<section class="card"><h2>Queries</h2><${Empty}>Nothing runs yet. Submit a query, or a deployment file.</${Empty}></section>`;
  // Never another one than was asked for: what can be done here would be done to the wrong one.
  const [name] = rest;
  const chosen = name
    ? streams.find((stream) => stream.name === name) || streams.find((stream) => stream.made_by === name)
    : streams.find((stream) => stream.kind === "result") || streams[0];
  return html`<div class="list-page"><${List} chosen=${chosen} /><div class="grid two">${chosen
    ? html`<${StreamCards} key=${chosen.name} stream=${chosen} act=${act} />`
    : html`<section class="card wide"><h2>${name}</h2><${Empty}>Nothing of this name runs now.</${Empty}></section>`}</div></div>`;
}
