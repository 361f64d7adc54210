// The connection, switches and apps, beside the phone.

import { apps } from "./apps.js";
import { h } from "./dom.js";
import { languages } from "./languages.js";

const SWITCHES = [
  ["locked", "Locked"], ["network", "Network"], ["saving", "Save power"], ["muted", "Mute"], ["focus", "Focus"],
];

const STATES = { connected: "Connected", connecting: "Connecting", offline: "Not connected", refused: "Refused by the service" };

export function panel(page) {
  return h("section", { key: "panel", class: "panel", inert: !page.link.up, "aria-label": "Switches" },
    connection(page), switches(page), apps(page));
}

function connection(page) {
  const { device } = page;
  if (!page.link.up) return unknown(device);
  const { state, reason, retry_in: retryIn } = device.connection;
  const left = retryIn === null ? null : Math.max(0, retryIn - (performance.now() - page.heardAt) / 1000);
  return h("section", { key: "connection", class: "box connection", "data-state": state },
    h("h2", null, "Service"),
    h("p", { class: "state", role: "status" }, h("span", { class: "dot", "aria-hidden": "true" }), STATES[state] ?? state),
    h("p", { class: "quiet" }, h("bdi", null, device.service)),
    reason && h("p", { key: "reason", class: "reason", dir: "auto" }, reason),
    left !== null && h("p", { key: "retry", class: "quiet" }, left > 0 ? `Trying again in ${Math.ceil(left)} s` : "Trying again"));
}

/** Without the agent nobody knows whether it is connected. */
function unknown(device) {
  return h("section", { key: "connection", class: "box connection", "data-state": "unknown" },
    h("h2", null, "Service"),
    h("p", { class: "state", role: "status" }, h("span", { class: "dot", "aria-hidden": "true" }), "Unknown"),
    h("p", { class: "quiet" }, h("bdi", null, device.service)));
}

function switches(page) {
  return h("section", { key: "switches", class: "box" },
    h("h2", null, "Device"),
    SWITCHES.map(([name, words]) => toggle(page, name, words)),
    toggleSound(page),
    languages(page));
}

function toggle(page, name, words) {
  const isOn = page.device[name];
  const flip = () => page.act(name === "locked" ? { do: isOn ? "unlock" : "lock" } : { do: "set", [name]: !isOn });
  return row(name, words, isOn, flip);
}

/** Sound in the browser is the page's own setting, not the device's. */
function toggleSound(page) {
  return row("sound", "Sound in this browser", page.sound.on, () => page.turnSound(!page.sound.on));
}

function row(name, words, isOn, flip) {
  return h("div", { key: name, class: "row" },
    h("span", { id: `switch-${name}` }, words),
    h("button", {
      class: "switch", type: "button", role: "switch", "aria-checked": String(isOn), "aria-labelledby": `switch-${name}`,
      on: { click: flip },
    }));
}
