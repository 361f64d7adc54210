// The sounds and the log, beside the phone.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { moment } from "./words.js";

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
    h("ol", { key: "list", class: "lines" }, [...device.sounds].reverse().map((heard) => h("li", { key: heard.id },
      time(heard.time),
      h("span", null, h("bdi", null, heard.name === "default" ? "the default sound" : heard.name), " of ", h("bdi", null, name(device, heard.topic)), particulars(heard))))));
}

function particulars(heard) {
  const words = [heard.critical && "critical", heard.volume !== null && `volume ${heard.volume}`].filter(Boolean);
  return words.length > 0 ? `, ${words.join(", ")}` : "";
}

function log(page) {
  const { device } = page;
  return h("section", { key: "log", class: "box log" },
    h("h2", { id: "log-title" }, "Log"),
    device.log.length === 0 && h("p", { key: "none", class: "quiet" }, "No events yet."),
    h("div", { key: "list", class: "log-list", role: "region", "aria-labelledby": "log-title", tabindex: "0" },
      h("ol", { class: "lines" }, named(device.log).reverse().map(({ key, line }) => h("li", { key },
        time(line.time), h("span", { dir: "auto" }, line.text))))));
}

/** Gives each line a key that stays unique when older lines are dropped. */
function named(lines) {
  const counts = new Map();
  return lines.map((line) => {
    const words = `${line.time} ${line.text}`;
    counts.set(words, (counts.get(words) ?? 0) + 1);
    return { key: `${words} ${counts.get(words)}`, line };
  });
}

function time(seconds) {
  return h("time", { datetime: new Date(seconds * 1000).toISOString() }, moment(seconds));
}

function name(device, topic) {
  return device.apps.find((app) => app.topic === topic)?.name ?? topic;
}
