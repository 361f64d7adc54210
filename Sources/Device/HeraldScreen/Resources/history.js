// The sounds and the log, beside the phone.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { log } from "./log.js";
import { moment } from "./words.js";

/** The number of sounds in the list; the log has all. */
const SOUNDS = 4;

export function history(page) {
  return h("section", { key: "history", class: "history", "aria-label": "Sounds and log" },
    sounds(page), log(page));
}

function sounds(page) {
  const { device, sound } = page;
  return h("section", { key: "sounds", class: "box" },
    h("h2", null, "Sounds"),
    !sound.on && h("p", { key: "off", class: "sound-off" },
      h("span", null, "Browsers mute a page until you allow sound."),
      h("button", { type: "button", class: "small", on: { click: () => page.turnSound(true) } }, icon("note"), "Turn sound on")),
    device.sounds.length === 0 && h("p", { key: "none", class: "quiet" }, "No sounds yet."),
    h("ol", { key: "list", class: "lines" }, device.sounds.slice(-SOUNDS).reverse().map((heard) => h("li", { key: heard.id },
      time(device, heard.time),
      h("span", null, h("bdi", null, heard.name === "default" ? "the default sound" : heard.name), " of ", h("bdi", null, name(device, heard.topic)), particulars(heard))))));
}

function particulars(heard) {
  const words = [heard.critical && "critical", heard.volume !== null && `volume ${heard.volume}`].filter(Boolean);
  return words.length > 0 ? `, ${words.join(", ")}` : "";
}

function time(device, seconds) {
  return h("time", { datetime: new Date(seconds * 1000).toISOString() }, moment(device, seconds));
}

function name(device, topic) {
  return device.apps.find((app) => app.topic === topic)?.name ?? topic;
}
