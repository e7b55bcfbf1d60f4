// Broadcasts: what is on the air, and what the devices that listen say they use.
import { Meter, count, html, percent, seconds, api, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

function Station({ of }) {
  const share = of.airtime_s / of.cycle_s;
  return html`<section class="card wide"><h2>Broadcast of ${of.deployment} <small>${of.organisation}, cycle ${count(of.cycle)} of ${seconds(of.cycle_s)}</small></h2>
    <p><${Meter} share=${share} label="on the air" /> on the air ${percent(share)} of the time${of.overloaded ? html` <b class="late">overloaded</b>` : null}</p>
    <div class="scroll"><table><thead><tr><th>query</th><th>cut</th><th>ships</th><th class="n">listening</th><th class="n">rows</th><th class="n">bytes</th></tr></thead><tbody>${Object.entries(of.queries).map(([name, query]) => html`
      <tr key=${name}><td>${name}</td><td>${query.cut} of ${query.operators}</td><td>${query.ships.join(", ") || "nothing"}</td><td class="n">${query.listeners}</td><td class="n">${count(query.rows)}</td><td class="n">${count(query.bytes)}</td></tr>`)}</tbody></table></div>
    ${of.devices.length ? html`<h3>Devices</h3><div class="scroll"><table><thead><tr><th>device</th><th>hears</th><th class="n">tuned</th><th class="n">computed</th><th class="n">energy</th><th class="n">battery for</th><th class="n">missed cycles</th></tr></thead><tbody>${of.devices.map((one) => html`
      <tr key=${one.device}><td>${one.device}</td><td>${one.query}</td><td class="n">${seconds(one.tuned_s)}</td><td class="n">${seconds(one.processed_s)}</td><td class="n">${one.energy_j == null ? "–" : `${one.energy_j.toPrecision(3)} J`}</td>
        <td class="n">${seconds(one.battery_s)}</td><td class=${one.missed_cycles ? "n late" : "n"}>${one.missed_cycles || 0}</td></tr>`)}</tbody></table></div>` : html`<p class="empty">No device has said anything yet.</p>`}</section>`;
}

export function Broadcasts() {
  const { view } = useStore();
  const [stations, setStations] = useState([]);
  const turn = Math.floor(view.at_s / 5);
  useEffect(() => { api("/api/devices").then(setStations, () => {}); }, [turn]);
  return stations.map((one) => html`<${Station} key=${one.deployment} of=${one} />`);
}
