// JSON to read: indented, with its parts in colours, and always as text.

import { h } from "./dom.js";
import { t } from "./words.js";

const PARTS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** A longer text is shown without colours: each part is an element. */
const MOST_COLOURED = 8000;

/** A JSON text, indented if it can be read; the text as it is otherwise. */
export function json(text, label) {
  const pretty = indented(text);
  return h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": label ?? t("json"), dir: "ltr" }, pretty.length > MOST_COLOURED ? pretty : coloured(pretty));
}

/** The value of a JSON text. A number that JavaScript would change, like `9007199254740993` or `1.10`, is kept as raw JSON. */
export function exact(text) {
  return JSON.parse(text, (_name, value, { source } = {}) => (typeof value === "number" && JSON.rawJSON && JSON.stringify(value) !== source ? JSON.rawJSON(source) : value));
}

export function indented(text) {
  try {
    return JSON.stringify(typeof text === "string" ? exact(text) : text, null, 2);
  } catch {
    return String(text);
  }
}

function coloured(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(PARTS)) {
    parts.push(text.slice(at, match.index));
    const kind = match[1] ? (match[2] ? "name" : "text") : match[3] ? "word" : "number";
    parts.push(h("span", { class: `json-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  return [...parts, text.slice(at)];
}
