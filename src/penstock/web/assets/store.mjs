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
  nodes: new Map(), // name -> {at, utilisation, memory}
  fragments: new Map(), // name -> {at, rate, latency, busyMs, held}
};
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

function add(one, values) {
  for (const [field, value] of Object.entries(values)) {
    one[field].push(value);
    if (one[field].length > KEPT) one[field].shift();
  }
}

const NODE = ["at", "utilisation", "memory"];
const FRAGMENT = ["at", "rate", "latency", "busyMs", "held"];

function take(view) {
  store.view = view;
  for (const node of view.nodes)
    add(series(store.nodes, node.name, NODE), {
      at: view.at_s,
      utilisation: node.utilisation,
      memory: node.memory_bytes,
    });
  for (const one of view.fragments) {
    const measured = one.measured;
    add(series(store.fragments, one.name, FRAGMENT), {
      at: view.at_s,
      rate: measured.rows_in_per_s ?? null,
      latency: measured.latest_latency_s ?? null,
      busyMs: measured.busy_ms ?? null,
      held: one.state === "held back" ? 1 : 0,
    });
  }
  if (view.shape !== store.shape) learnShape(view.shape);
  tell();
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

/** Busy, held back and idle as shares of the last half minute; null while too little is known. */
export function shares(name) {
  const one = store.fragments.get(name);
  if (!one || one.at.length < 3) return null;
  const last = one.at.length - 1;
  let first = last;
  while (first > 0 && one.at[last] - one.at[first] < SHARES_OVER_S && one.busyMs[first - 1] !== null
    && one.busyMs[first - 1] <= one.busyMs[first]) first -= 1;
  const passed = one.at[last] - one.at[first];
  if (passed < 2 || one.busyMs[last] === null) return null;
  const held = one.held.slice(first + 1).reduce((sum, x) => sum + x, 0) / (last - first);
  const busy = Math.min(1 - held, (one.busyMs[last] - one.busyMs[first]) / 1000 / passed);
  return { busy, held, idle: Math.max(0, 1 - busy - held) };
}

async function learnHistory() {
  const found = await api("/api/history?last=120").catch(() => null);
  if (!found) return;
  for (const [name, one] of Object.entries(found.nodes)) {
    const known = series(store.nodes, name, NODE);
    known.at.unshift(...one.at_s);
    known.utilisation.unshift(...one.utilisation);
    known.memory.unshift(...one.memory_bytes);
  }
  for (const [name, one] of Object.entries(found.fragments)) {
    const known = series(store.fragments, name, FRAGMENT);
    known.at.unshift(...one.at_s);
    known.rate.unshift(...one.rows_in_per_s);
    known.latency.unshift(...one.latency_s);
    known.busyMs.unshift(...one.at_s.map(() => null));
    known.held.unshift(...one.at_s.map(() => 0));
  }
  tell();
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
    const refusal = await api("/api/nodes").then(() => null, (error) => error);
    if (refusal && refusal.status === 401) store.link = "out";
    else setTimeout(connect, 1000);
    tell();
  };
}
