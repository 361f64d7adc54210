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

export function indented(text) {
  try {
    return JSON.stringify(typeof text === "string" ? JSON.parse(text) : text, null, 2);
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
