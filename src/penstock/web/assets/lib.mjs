// What all pages share: rendering, the API, numbers as people read them.
import { h, render, Fragment } from "./vendor/preact.mjs";
import { useState, useEffect, useRef, useMemo, useCallback } from "./vendor/preact-hooks.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
export { h, render, Fragment, useState, useEffect, useRef, useMemo, useCallback };

/** An answer of the API; throws what it refuses, with the text of the command line. */
export async function api(path, options = {}) {
  const given = { ...options };
  if (given.json !== undefined) {
    given.body = JSON.stringify(given.json);
    given.headers = { "Content-Type": "application/json" };
    delete given.json;
  }
  let answer;
  try {
    answer = await fetch(path, given);
  } catch {
    throw new Refusal({ text: "the controller does not answer. Its queries go on without it." }, 0);
  }
  const body = await answer.json().catch(() => ({ text: `status ${answer.status}` }));
  if (!answer.ok) throw new Refusal(body, answer.status);
  return body;
}

export class Refusal extends Error {
  constructor(told, status) {
    super(told.text || told.error || "refused");
    this.told = told;
    this.status = status;
  }
}

const part = encodeURIComponent;
export const path = (first, ...parts) => [first, ...parts.map(part)].join("/");

export function count(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  const size = Math.abs(n);
  if (size >= 1e9) return `${(n / 1e9).toFixed(1)} G`;
  if (size >= 1e6) return `${(n / 1e6).toFixed(1)} M`;
  if (size >= 1e4) return `${(n / 1e3).toFixed(size >= 1e5 ? 0 : 1)} k`;
  return size >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString("en") : n.toFixed(1);
}

export function seconds(s) {
  if (s === null || s === undefined) return "–";
  const size = Math.abs(s);
  if (size < 1) return `${Math.round(s * 1000)} ms`;
  if (size < 100) return `${s.toFixed(1)} s`;
  if (size < 7200) return `${Math.round(s / 60)} min`;
  if (size < 172800) return `${(s / 3600).toFixed(1)} h`;
  return `${Math.round(s / 86400).toLocaleString("en")} d`;
}

export function bytes(n) {
  if (!n) return "–";
  if (n >= 2 ** 30) return `${(n / 2 ** 30).toFixed(1)} GB`;
  return n >= 2 ** 20 ? `${Math.round(n / 2 ** 20)} MB` : `${Math.ceil(n / 2 ** 10)} kB`;
}

export function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.0001) return "< 0.01 %";
  if (share > 0 && share < 0.01) return `${(100 * share).toPrecision(1)} %`;
  return `${Math.round(100 * share)} %`;
}

export const clock = (s) => new Date(1000 * s).toTimeString().slice(0, 8);

export function ago(s, nowS) {
  const past = Math.max(0, nowS - s);
  return past < 1 ? "now" : `${seconds(past)} ago`;
}

/** The state of something as a coloured dot with its word. */
export function State({ of }) {
  return html`<span class=${`state ${of.replace(" ", "-")}`}>${of}</span>`;
}

/** A number or a name with the word for it. */
export function Fact({ name, isLate, children }) {
  return html`<div><dt>${name}</dt><dd class=${isLate ? "late" : ""}>${children}</dd></div>`;
}

/** A table under heads such as "query, #rows": what begins with # is over numbers. */
export function Table({ heads, id, children }) {
  const cells = heads.split(", ").map((head) => (head.startsWith("#") ? ["n", head.slice(1)] : ["", head]));
  return html`<div class="scroll"><table id=${id}>
    <thead><tr>${cells.map(([kind, head]) => html`<th key=${head} class=${kind}>${head}</th>`)}</tr></thead>
    <tbody>${children}</tbody></table></div>`;
}

export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

/** A line of numbers as a small picture, from zero to its greatest, or to `most`. */
export function Spark({ values, most, width = 120, height = 26, title = "" }) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2)
    return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} height=${height} aria-hidden="true"></svg>`;
  const top = most || Math.max(...known, 1e-9);
  const step = width / (values.length - 1);
  const y = (value) => height - 1 - (Math.min(value, top) / top) * (height - 3);
  const points = values.map((value, at) => [at * step, y(value ?? 0)]);
  const line = points.map(([x, v]) => `${x.toFixed(1)},${v.toFixed(1)}`).join(" ");
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} height=${height} preserveAspectRatio="none" role="img" aria-label=${title}>
    <polygon points=${`0,${height} ${line} ${width},${height}`} /><polyline points=${line} /></svg>`;
}

/** A share from zero to one as a bar with its number. */
export function Meter({ share, label }) {
  const kind = share >= 0.85 ? "hot" : share >= 0.6 ? "warm" : "";
  const width = `${Math.min(100, Math.round(100 * (share || 0)))}%`;
  return html`<span class="meter" role="img" aria-label=${`${label || ""} ${percent(share)}`}>
    <span class=${`fill ${kind}`} style=${{ width }}></span></span>`;
}

/** Busy, held back and idle as shares of time. */
export function Shares({ of }) {
  if (!of) return html`<span class="shares unknown" title="not measured yet"></span>`;
  const text = `busy ${percent(of.busy)}, held back ${percent(of.held)}, idle ${percent(of.idle)}`;
  const w = (share) => ({ width: `${100 * share}%` });
  return html`<span class="shares" title=${text} role="img" aria-label=${text}>
    <span class="busy" style=${w(of.busy)}></span><span class="held" style=${w(of.held)}></span></span>`;
}
