// Broadcasts: what is on the air, and what the devices that listen say they use.
import { Meter, Table, api, count, html, percent, seconds, useEffect, useState } from "./lib.mjs";
import { useStore } from "./store.mjs";

const ASK_EVERY_S = 5;

function joules(energy) {
  if (energy === null || energy === undefined) return "–";
  return energy < 1000 ? `${energy.toPrecision(3)} J` : `${count(energy / 1000)} kJ`;
}

function Station({ of }) {
  const share = of.airtime_s / of.cycle_s;
  return html`<section class="card wide">
    <h2>Broadcast of ${of.deployment} <small>${of.organisation}, cycle ${count(of.cycle)} of ${seconds(of.cycle_s)}</small></h2>
    <p><${Meter} share=${share} label="on the air" /> on the air ${percent(share)} of the time
      ${of.overloaded ? html` <b class="late">overloaded</b>` : null}</p>
    <${Table} heads="query, cut, ships, #listening, #rows, #bytes">
      ${Object.entries(of.queries).map(([name, query]) => html`<${Query} key=${name} name=${name} query=${query} />`)}</${Table}>
    <h3>Devices</h3>
    ${of.devices.length
      ? html`<${Table} heads="device, hears, #tuned, #computed, #energy, #battery for, #missed cycles">
          ${of.devices.map((device) => html`<${Device} key=${`${device.device} ${device.query}`}
            device=${device} battery=${of.batteries[device.device]} />`)}</${Table}>`
      : html`<p class="empty">No device has said anything yet.</p>`}</section>`;
}

function Query({ name, query }) {
  return html`<tr><td>${name}</td><td>${query.cut} of ${query.operators}</td><td>${query.ships.join(", ") || "nothing"}</td>
    <td class="n">${query.listeners}</td><td class="n">${count(query.rows)}</td><td class="n">${count(query.bytes)}</td></tr>`;
}

function Device({ device, battery }) {
  return html`<tr><td>${device.device}</td><td>${device.query}</td>
    <td class="n">${seconds(device.tuned_s)}</td><td class="n">${seconds(device.processed_s)}</td>
    <td class="n">${joules(device.energy_j)}</td><td class="n">${seconds(battery)}</td>
    <td class=${device.missed_cycles ? "n late" : "n"}>${device.missed_cycles || 0}</td></tr>`;
}

export function Broadcasts() {
  const { view } = useStore();
  const [stations, setStations] = useState([]);
  const turn = Math.floor(view.at_s / ASK_EVERY_S);
  useEffect(() => {
    api("/api/devices").then(setStations, () => {});
  }, [turn]);
  return stations.map((station) => html`<${Station} key=${station.deployment} of=${station} />`);
}
