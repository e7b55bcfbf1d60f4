// Lines over time.
import { html, useEffect, useRef } from "./lib.mjs";

export const colour = (at) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue(`--series-${(at % 8) + 1}`)
    .trim();
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Lines of several series over the same times; redrawn in place when numbers come in. */
export function Lines({ at, lines, height = 170, format = String, most }) {
  const box = useRef(null);
  const plot = useRef(null);
  const key = lines.map((line) => line.name).join("\n");
  const latest = useRef(null);
  const data = [at, ...lines.map((line) => line.values)];
  latest.current = data;
  const make = () => {
    if (!box.current) return;
    plot.current?.destroy();
    const axis = {
      stroke: css("--muted"),
      grid: { stroke: css("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui",
    };
    plot.current = new uPlot(
      {
        width: Math.max(200, box.current.clientWidth),
        height,
        cursor: { points: { size: 6 } },
        legend: { show: false },
        padding: [8, 26, 0, 0], // Room for half of the last time.
        scales: { y: { range: (_, low, high) => [0, most || Math.max(high || 0, 1e-6) * 1.1] } },
        axes: [
          {
            ...axis,
            space: 70,
            size: 26,
            values: (_, ticks) => ticks.map((s) => new Date(1000 * s).toTimeString().slice(0, 8)),
          },
          { ...axis, size: 54, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          {},
          ...lines.map((line, n) => ({
            label: line.name,
            stroke: colour(n),
            width: 1.5,
            spanGaps: true,
            points: { show: false },
          })),
        ],
      },
      latest.current,
      box.current,
    );
  };
  useEffect(() => {
    // The words of a page first: charts take longest to make.
    const soon = setTimeout(make, 40);
    const fit = () => box.current && plot.current?.setSize({ width: Math.max(200, box.current.clientWidth), height });
    addEventListener("themechange", make);
    addEventListener("resize", fit);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    return () => {
      clearTimeout(soon);
      removeEventListener("themechange", make);
      removeEventListener("resize", fit);
      dark.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [key]);
  useEffect(() => {
    plot.current?.setData(data);
  });
  return html`<div class="chart" ref=${box}></div>
    <ul class="legend">${lines.map((line, n) => html`<li key=${line.name}><i class=${`dot s${(n % 8) + 1}`}></i>
      ${line.name} <b>${format(line.values.at(-1))}</b></li>`)}</ul>`;
}

/** Series with times of their own on common times: the last value before each. */
export function aligned(all, pick, points = 90) {
  const end = Math.max(...all.map(([, series]) => series.at.at(-1) || 0));
  const begin = Math.max(end - 150, Math.min(...all.map(([, series]) => series.at[0] || end)));
  if (!(end > begin)) return { at: [], lines: [] };
  const at = Array.from({ length: points }, (_, n) => begin + ((end - begin) * n) / (points - 1));
  const lines = all.map(([name, series]) => {
    const values = pick(series);
    let k = -1;
    return {
      name,
      values: at.map((s) => {
        while (k + 1 < series.at.length && series.at[k + 1] <= s + 0.5) k += 1;
        return k < 0 ? null : values[k];
      }),
    };
  });
  return { at, lines };
}
