// An entry of the log: a notification with what became of it, or an event of the device.

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { moment } from "./words.js";

const PLACES = { banner: "Banner", "lock screen": "Lock screen", list: "List" };

/** The last description of each notification's entry: unchanged ones are not described again. */
const described = new WeakMap();

export function entry(page, { key, record, event, time }) {
  if (event) {
    return h("li", { key, class: "entry event" }, clock(page, time), h("span", { dir: "auto" }, event.text));
  }
  const isOpen = page.log.unfolded.has(key);
  const app = page.device.apps.find(({ topic }) => topic === record.topic)?.name ?? record.topic;
  const { copied, device: { time_zone: zone } } = page;
  const last = described.get(record);
  if (last && last.isOpen === isOpen && last.app === app && last.copied === copied && last.zone === zone) return last.item;
  const item = notification(page, { key, record, time, isOpen, app });
  described.set(record, { isOpen, app, copied, zone, item });
  return item;
}

function notification(page, { key, record, time, isOpen, app }) {
  const fold = ({ target }) => page.change(({ log }) => (target.open ? log.unfolded.add(key) : log.unfolded.delete(key)));
  const words = text(record) || sent(record);
  return h("li", { key, class: "entry" },
    h("details", { on: { toggle: fold } },
      h("summary", null,
        clock(page, time),
        h("span", { class: "entry-words" },
          h("span", { class: "entry-line" },
            h("strong", { dir: "auto" }, app),
            h("span", { class: "mark", "data-shown": String(record.shown) }, outcome(record))),
          words && h("span", { key: "text", class: "entry-text", dir: "auto", lang: record.language ?? "" }, words),
          h("span", { class: "entry-facts" }, facts(record)))),
      isOpen && particulars(page, key, record)));
}

function clock({ device }, seconds) {
  return h("time", { datetime: new Date(seconds * 1000).toISOString() }, moment(device, seconds));
}

/** The texts that were shown. */
function text({ title, subtitle, body }) {
  return [title, subtitle, body].filter(Boolean).join(" · ");
}

/** The alert of a payload that was not shown as one. */
function sent({ payload }) {
  if (!payload || !isJSON(payload)) return "";
  const alert = JSON.parse(payload)?.aps?.alert;
  return typeof alert === "string" ? alert : text({ title: alert?.title, subtitle: alert?.subtitle, body: alert?.body });
}

function outcome(record) {
  if (record.activity) return `Live Activity: ${record.activity.event}`;
  if (record.place === "banner" && record.style === "alert") return "Alert";
  if (record.place) return PLACES[record.place] ?? record.place;
  if (record.delivered_to_app) return "In the open app";
  return record.background_launch || record.because.includes("it is silent") ? "Silent" : "Not shown";
}

/** Kind, priority and the beginning of the identifier. */
function facts(record) {
  const kind = record.local ? "local" : record.push_type ?? "alert";
  return [
    kind, record.priority && `priority ${record.priority}`,
    record.local ?? record.apns_id.slice(0, 8),
  ].filter(Boolean).join(" · ");
}

function particulars(page, key, record) {
  const rows = [
    ["apns-id", record.apns_id],
    ["Local name", record.local],
    ["Topic", record.topic],
    ["Push type", record.push_type],
    ["Priority", record.priority],
    ["Device", situation(record)],
    ["Interruption", record.interruption],
    ["Thread", record.thread],
    ["Category", record.category],
    ["Badge", record.badge.after !== record.badge.before && `${record.badge.before} → ${record.badge.after}`],
    ["Sound", record.sound && `${record.sound}${record.critical ? ", critical" : ""}`],
    ["Why not more", record.because.join("; ")],
    ["Service program", record.extension],
    ["Background run", record.background],
    ["Replaces", record.replaces],
    ["Replaced by", record.replaced_by],
    ["The user", record.response && response(record.response)],
  ].filter(([, value]) => value);
  return h("div", { class: "entry-more" },
    h("dl", null, rows.map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", { dir: "auto" }, String(value))))),
    record.payload && h("pre", { key: "payload", class: "payload", dir: "ltr", lang: "" }, pretty(record.payload)),
    h("p", { class: "buttons" },
      record.apns_id && copyButton(page, `id ${key}`, record.apns_id, "Copy apns-id"),
      record.payload && copyButton(page, `payload ${key}`, record.payload, "Copy payload")));
}

function situation({ state, locked, focus, muted, languages }) {
  return [`app ${state}`, locked && "locked", focus && "Focus on", muted && "muted", languages.join(", ")].filter(Boolean).join(" · ");
}

function response({ kind, action, text: words }) {
  return [kind, action, words && `“${words}”`].filter(Boolean).join(" ");
}

/** JSON with line breaks, and otherwise as it came: all digits of numbers, and keys that appear more than once. */
function pretty(text) {
  if (!isJSON(text)) return text;
  let words = "";
  let depth = 0;
  let before = "";
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const ends = token === "}" || token === "]";
    const begins = before === "{" || before === "[";
    if (ends) depth -= 1;
    if (before === "," || begins !== ends) words += `\n${"  ".repeat(depth)}`;
    else if (before === ":") words += " ";
    words += token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return words;
}

function isJSON(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
