// Keys: never inside fields, and off if the reader wants that.

import { moveRow } from "./table.js";

const PLACES = { n: "/notifications", d: "/devices", p: "/providers", c: "/compose", r: "/refusals", i: "/inbox", s: "/settings", h: "/" };
const SWITCH = "herald-keys";
/** The time in which `g` waits for its second key. */
const PAIR_TIME = 1500;

export const keysAreOn = () => localStorage.getItem(SWITCH) !== "off";

export function switchKeys(isOn) {
  localStorage.setItem(SWITCH, isOn ? "on" : "off");
}

export function hearKeys(app) {
  let goesAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return escape(app, event);
    const { target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !app.session || app.question || !keysAreOn()) return;
    if (target.closest?.("input, textarea, select, [contenteditable]")) return;
    if (event.timeStamp - goesAt < PAIR_TIME) {
      goesAt = -Infinity;
      if (PLACES[event.key]) {
        event.preventDefault();
        app.go(PLACES[event.key]);
      }
      return;
    }
    const deed = {
      g: () => (goesAt = event.timeStamp),
      "/": focusSearch,
      j: () => moveRow(1),
      k: () => moveRow(-1),
      p: () => app.page?.pause?.(),
      b: () => app.page?.copyReport?.(),
      "?": () => app.openHelp(),
    }[event.key];
    if (!deed) return;
    event.preventDefault();
    deed();
  });
}

function focusSearch() {
  const fields = [...document.querySelectorAll("input[type=search]")].filter((field) => field.offsetParent);
  const field = fields.find((one) => one.closest("main")) ?? fields[0];
  field?.focus();
  field?.select();
}

function escape(app, event) {
  if (event.defaultPrevented) return;
  if (app.question || app.isHelpOpen || app.isMoreOpen) {
    app.question = null;
    app.isHelpOpen = false;
    app.isMoreOpen = false;
    app.draw();
  } else if (event.target.closest?.("input, textarea")) event.target.blur();
}
