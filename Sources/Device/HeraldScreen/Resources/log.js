// The log: one entry for each notification and for each event of the device, oldest first.

import { save } from "./clipboard.js";
import { h } from "./dom.js";
import { entry } from "./log-entry.js";

const KINDS = { all: "Everything", shown: "Shown", hidden: "Not shown", events: "Device events" };
const CLEARED = "herald-log-cleared";

/** The state of the log's view. */
export class LogView {
  constructor() {
    this.kind = "all";
    this.words = "";
    /** Entries until this time, in UNIX seconds, are hidden. A reload of the page keeps it. */
    this.cleared = Number(sessionStorage.getItem(CLEARED) ?? 0);
    /** The unfolded entries. */
    this.unfolded = new Set();
  }

  clear(time) {
    this.cleared = time;
    sessionStorage.setItem(CLEARED, String(time));
  }
}

export function log(page) {
  const { log: view, displayLog } = page;
  const entries = all(page);
  const since = entries.filter(({ time }) => time > view.cleared);
  const found = since.filter((one) => matches(view, one));
  return h("section", { key: "log", class: "box log" },
    h("div", { class: "log-head" },
      h("h2", { id: "log-title" }, "Log"),
      h("button", { class: "small", type: "button", on: { click: () => page.change(() => view.clear(entries.at(-1)?.time ?? 0)) } },
        "Clear", h("span", { class: "unseen" }, " the log")),
      h("button", { class: "small", type: "button", on: { click: () => save(`${page.device.device}-log.jsonl`, lines(found)) } },
        "Export", h("span", { class: "unseen" }, " these entries"))),
    h("div", { class: "log-filter" },
      h("label", { class: "unseen", for: "log-kind" }, "Kind of entries"),
      h("select", { id: "log-kind", prop: { value: view.kind }, on: { change: ({ target }) => page.change(() => (view.kind = target.value)) } },
        Object.entries(KINDS).map(([kind, words]) => h("option", { key: kind, value: kind }, words))),
      h("label", { class: "unseen", for: "log-words" }, "Filter"),
      h("input", {
        id: "log-words", type: "search", placeholder: "Filter", autocomplete: "off", spellcheck: "false",
        on: { input: ({ target }) => page.change(() => (view.words = target.value)) },
      })),
    h("div", { key: "list", id: "log-list", class: "log-list", role: "region", "aria-labelledby": "log-title", tabindex: "0" },
      since.length < entries.length && h("p", { key: "cleared", class: "log-note" },
        `${entries.length - since.length} earlier cleared. `,
        h("button", { class: "more", type: "button", on: { click: () => page.change(() => view.clear(0)) } }, "Show them")),
      since.length === entries.length && displayLog.hasOlder && h("p", { key: "older", class: "log-note" },
        h("button", { class: "more", type: "button", on: { click: () => displayLog.readOlder() } }, "Show older ones")),
      found.length === 0 && h("p", { key: "none", class: "quiet" }, since.length > 0 ? "No entry matches the filter." : "No entries."),
      h("ol", { class: "entries" }, found.map((one) => entry(page, one)))));
}

/** Keeps the newest entry in view if it was. Call it before a change of the page, and its result afterwards. */
export function stayAtEnd() {
  const list = document.getElementById("log-list");
  const wasAtEnd = !list || list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  return () => {
    const changed = document.getElementById("log-list");
    if (wasAtEnd && changed) changed.scrollTop = changed.scrollHeight;
  };
}

/** Notifications and events, in the order of time. */
function all({ device, displayLog }) {
  const entries = [
    ...[...displayLog.records].map(([key, record]) => ({ key, time: Date.parse(record.received) / 1000, record })),
    ...named(device.log),
  ];
  return entries.sort((one, other) => one.time - other.time);
}

/** Gives each event a key that stays unique when older ones are dropped. */
function named(events) {
  const counts = new Map();
  return events.map((event) => {
    const words = `${event.time} ${event.text}`;
    counts.set(words, (counts.get(words) ?? 0) + 1);
    return { key: `event ${words} ${counts.get(words)}`, time: event.time, event };
  });
}

function matches(view, { record, event }) {
  const isShown = record?.shown || record?.activity;
  const isOfKind = { all: true, shown: isShown, hidden: record && !isShown, events: Boolean(event) }[view.kind];
  const words = view.words.trim().toLowerCase();
  return isOfKind && (words === "" || JSON.stringify(record ?? event).toLowerCase().includes(words));
}

/** JSON Lines: display records as in `shown.jsonl`, and events as `{"time":…,"text":…}`. */
function lines(entries) {
  return entries.map(({ record, event }) => `${JSON.stringify(record ?? event)}\n`).join("");
}
