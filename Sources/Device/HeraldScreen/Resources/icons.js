// Icons, as strokes on a 24 × 24 grid.

import { h } from "./dom.js";
import { hue, initial } from "./words.js";

const STROKES = {
  lock: "M7 11V8a5 5 0 0 1 10 0v3M5.5 11h13v9h-13z",
  bell: "M6 17v-6a6 6 0 0 1 12 0v6l1.5 2h-15zM10 21h4",
  bellOff: "M6 17v-6a6 6 0 0 1 12 0v6l1.5 2h-15zM10 21h4M4 3l17 18",
  moon: "M19 14.5A8 8 0 0 1 9.5 5 8 8 0 1 0 19 14.5z",
  leaf: "M5 19C5 9 11 5 20 4c0 9-4 15-12 14M5 20c2-5 5-8 9-10",
  signal: "M4 20v-4M9.3 20v-8M14.7 20v-12M20 20V4",
  signalOff: "M4 20v-4M9.3 20v-8M14.7 20v-3M20 20v-9M4 3l17 18",
  note: "M9 18V5l11-2v13M9 18a2.7 2.7 0 1 1-5.4 0A2.7 2.7 0 0 1 9 18zM20 16a2.7 2.7 0 1 1-5.4 0 2.7 2.7 0 0 1 5.4 0z",
  noteOff: "M9 18V5l11-2v13M9 18a2.7 2.7 0 1 1-5.4 0A2.7 2.7 0 0 1 9 18zM3 3l18 18",
  clock: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 8v4.3l3 2",
  alert: "M12 4 2.8 20h18.4zM12 10v4.5M12 17.2v.3",
  close: "M6 6l12 12M18 6 6 18",
  device: "M8 3h8a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM10.5 18h3",
  switches: "M4 8h10M18 8h2M4 16h2M10 16h10M16 5.7a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6zM8 13.7a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6z",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  check: "M5 12.5l4.5 4.5L19 7.5",
};

/** A decorative icon. */
export function icon(name) {
  return h("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: STROKES[name] }));
}

/** An icon with a label. */
export function sign(name, words) {
  return h("span", { key: name, class: "sign", role: "img", "aria-label": words, title: words }, icon(name));
}

/** An app's icon, or the first letter of its name. */
export function appIcon(app, topic = app?.topic ?? "") {
  if (app?.icon) {
    const address = `/api/apps/${encodeURIComponent(topic)}/icon`;
    return h("img", { key: "icon", class: "app-icon", src: address, alt: "", draggable: "false" });
  }
  const letter = initial(app?.name ?? topic);
  return h("span", { key: "letter", class: "app-icon letter", "aria-hidden": "true", vars: { "--hue": hue(topic) } }, letter);
}
