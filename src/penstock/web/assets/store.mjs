// The system as the page knows it: the newest view, and what was measured lately.
import { api, useEffect, useState } from "./lib.mjs";

const KEPT = 180;
const SHARES_OVER_S = 30;

export const store = {
  view: null,
  link: "connecting", // live, lost, or out if the browser is not logged in
  graph: [],
  streams: [],
  shape: null,
  nodes: new Map(), // name -> {at, utilisation, memory, held}
  fragments: new Map(), // name -> {at, rate, latency, busy, held}
};
const busyMs = new Map(); // fragment -> [when, time in batches], of the newest view
const followers = new Set();
let queued = false;

export function useStore() {
  const [, redraw] = useState(0);
  useEffect(() => {
    const look = () => redraw((n) => n + 1);
    followers.add(look);
    return () => followers.delete(look);
  }, []);
  return store;
}

function tell() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => {
    queued = false;
    followers.forEach((look) => look());
  });
}

function series(map, name, fields) {
  let found = map.get(name);
  if (!found) map.set(name, (found = Object.fromEntries(fields.map((field) => [field, []]))));
  return found;
}

function add(known, values) {
  for (const [field, value] of Object.entries(values)) {
    known[field].push(value);
    if (known[field].length > KEPT) known[field].shift();
  }
}

const NODE = ["at", "utilisation", "memory", "held"];
const FRAGMENT = ["at", "rate", "latency", "busy", "held"];

function take(view) {
  store.view = view;
  const holding = new Set(view.fragments.filter((fragment) => fragment.state === "held back").map((fragment) => fragment.node));
  for (const node of view.nodes)
    add(series(store.nodes, node.name, NODE), {
      at: view.at_s,
      utilisation: node.state === "up" ? node.utilisation : null,
      memory: node.memory_bytes,
      held: holding.has(node.name) ? 1 : 0,
    });
  for (const fragment of view.fragments) {
    const measured = fragment.measured;
    add(series(store.fragments, fragment.name, FRAGMENT), {
      at: view.at_s,
      rate: measured.rows_in_per_s ?? null,
      latency: measured.latest_latency_s ?? null,
      busy: busySince(fragment.name, view.at_s, measured.busy_ms ?? null),
      held: fragment.state === "held back" ? 1 : 0,
    });
  }
  forgetAllBut(store.nodes, view.nodes);
  forgetAllBut(store.fragments, view.fragments);
  forgetAllBut(busyMs, view.fragments);
  if (view.shape !== store.shape) learnShape(view.shape);
  tell();
}

/**
 * The share of time that a fragment worked since the view before; null if it was started anew.
 * Above one where views come more often than measurements: only the mean over many means something.
 */
function busySince(name, atS, ms) {
  const [beforeS, before] = busyMs.get(name) || [0, null];
  busyMs.set(name, [atS, ms]);
  if (ms === null || before === null || ms < before || atS <= beforeS) return null;
  return (ms - before) / 1000 / (atS - beforeS);
}

function forgetAllBut(map, known) {
  const names = new Set(known.map((item) => item.name));
  for (const name of map.keys()) if (!names.has(name)) map.delete(name);
}

async function learnShape(shape) {
  store.shape = shape;
  try {
    [store.graph, store.streams] = await Promise.all([api("/api/graph"), api("/api/streams")]);
    tell();
  } catch {
    store.shape = null; // The next view asks again.
  }
}

const mean = (values) => {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

function sharesOf(known, pick) {
  if (!known || known.at.length < 2) return null;
  const since = known.at.at(-1) - SHARES_OVER_S;
  const first = known.at.findIndex((at) => at >= since);
  const busy = mean(pick(known).slice(first));
  if (busy === null) return null;
  const held = mean(known.held.slice(first));
  const worked = Math.min(busy, 1 - held);
  return { busy: worked, held, idle: 1 - held - worked };
}

/** Busy, held back and idle of a fragment as shares of the last half minute; null if not known. */
export const shares = (name) => sharesOf(store.fragments.get(name), (known) => known.busy);

/** The same of a node: what it uses of its cores, and how long something on it was held back. */
export const nodeShares = (name) => sharesOf(store.nodes.get(name), (known) => known.utilisation);

async function learnHistory() {
  const found = await api("/api/history?last=120").catch(() => null);
  if (!found) return;
  for (const [name, told] of Object.entries(found.nodes))
    prepend(series(store.nodes, name, NODE), told.at_s, {
      utilisation: told.utilisation,
      memory: told.memory_bytes,
      held: told.at_s.map(() => 0),
    });
  for (const [name, told] of Object.entries(found.fragments))
    prepend(series(store.fragments, name, FRAGMENT), told.at_s, {
      rate: told.rows_in_per_s,
      latency: told.latency_s,
      busy: told.busy,
      held: told.at_s.map(() => 0),
    });
  tell();
}

/** What was measured before the first view; what came after it is known already. */
function prepend(known, at, values) {
  const first = known.at[0] ?? Infinity;
  const older = at.filter((s) => s < first).length; // Oldest first.
  known.at.unshift(...at.slice(0, older));
  for (const [field, all] of Object.entries(values)) known[field].unshift(...all.slice(0, older));
}

let source = null;

export function follow() {
  learnHistory();
  connect();
}

function connect() {
  source = new EventSource("/api/live");
  source.addEventListener("view", (event) => {
    store.link = "live";
    take(JSON.parse(event.data));
  });
  source.onerror = async () => {
    store.link = "lost";
    tell();
    if (source.readyState !== EventSource.CLOSED) return; // It tries again by itself.
    const refusal = await api("/api/nodes").then(
      () => null,
      (error) => error,
    );
    if (refusal && refusal.status === 401) store.link = "out";
    else setTimeout(connect, 1000);
    tell();
  };
}
