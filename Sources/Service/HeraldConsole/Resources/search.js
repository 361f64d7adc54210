// Searches of the journal, and what belongs to one notification in their lines.

import { post } from "./api.js";
import { address, place } from "./router.js";
import { isFinal } from "./states.js";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TOKEN = /^[0-9a-f]{64,200}$/i;

/** Opens what was typed. An identifier is a notification's, and a token is asked for its device: no address has it. Returns false for words of a search. */
export async function openTyped(app, text) {
  if (UUID.test(text)) {
    app.go(place("notifications", text.toLowerCase()));
    return true;
  }
  if (!TOKEN.test(text) || !app.may("sender")) return false;
  const found = await app.act(() => post("/v1/tools/token", { text }));
  if (found?.device) app.go(address("/notifications", { q: [`device:${found.device}`, found.topic && `topic:${found.topic}`].filter(Boolean).join(" ") }));
  else if (found) app.fail(found.verdict);
  return true;
}

/** Searches; stops a search that takes longer than its reader. */
export function search(question, signal) {
  const set = Object.fromEntries(Object.entries(question).filter(([, value]) => value !== null && value !== undefined && (value !== "" || question.q === value)));
  return post("/v1/journal/search", set, signal);
}

/** A search in one environment, unless it names one itself. */
export function within(q, environment) {
  return !environment || /(^|\s)-?environment:/i.test(q) ? q : `${q} environment:${environment}`.trim();
}

/** Lines, newest first, as notifications: each with its newest line and all of its lines. */
export function grouped(lines) {
  const groups = new Map();
  for (const line of lines) {
    const key = `${line.unique_id} ${line.device}`;
    const group = groups.get(key);
    if (group) group.lines.push(line);
    else groups.set(key, { key, line, lines: [line] });
  }
  return [...groups.values()];
}

/** The time from the first line to a line that is the end, in milliseconds; null if there is none yet. */
export function took({ line, lines }) {
  const first = lines.at(-1);
  return first.state === "received" && line !== first && isFinal(line.state) ? Date.parse(line.time) - Date.parse(first.time) : null;
}

/** A field with a comma, a quote or a line break is quoted; a formula of a spreadsheet is made a text. */
function cell(value) {
  const text = String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function asCSV(lines) {
  const names = ["time", "id", "unique_id", "topic", "environment", "device", "provider", "type", "priority", "size", "state", "reason", "replacement", "node"];
  return [names, ...lines.map((line) => names.map((name) => line[name]))].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
