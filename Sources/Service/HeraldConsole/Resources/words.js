// The words of the page, from one table, and a made-up language that shows in tests what the table lacks.

import { WORDS as FIRST } from "./words-en.js";

const WORDS = { ...FIRST };

/** Reads the words of the pages that open later. */
export async function readWords() {
  Object.assign(WORDS, (await import("./words-en-pages.js")).WORDS);
}

const asked = new URLSearchParams(location.search).get("lang") ?? "";
const isPseudo = asked.startsWith("qps");
const ACCENTS = { a: "á", e: "é", i: "í", o: "ó", u: "ú", A: "Á", E: "É", I: "Í", O: "Ó", U: "Ú", n: "ñ", c: "ç", s: "š", y: "ý" };
const plurals = new Intl.PluralRules("en");

/** A text of the table, with its parts filled in: `{count}`. An entry with `one` and `other` follows `parts.count`. */
export function t(name, parts = {}) {
  const entry = WORDS[name];
  const text = typeof entry === "object" ? entry[plurals.select(parts.count)] ?? entry.other : entry ?? name;
  const filled = (isPseudo ? pseudo(text) : text).replaceAll(/\{(\w+)\}/g, (_, part) => parts[part] ?? "");
  return filled;
}

/** Whether the table has a text. */
export function has(name) {
  return Object.hasOwn(WORDS, name);
}

/** Sets the language and the direction of the page. */
export function markLanguage(root) {
  root.lang = isPseudo ? "en-XA" : "en";
  root.dir = asked === "qps-rtl" ? "rtl" : "ltr";
}

/** Accents on the letters, and 40 % more of them. */
function pseudo(text) {
  const accented = text.split(/(\{\w+\})/).map((part) => part.startsWith("{") ? part : part.replaceAll(/[a-zA-Z]/g, (letter) => ACCENTS[letter] ?? letter));
  return `[${accented.join("")}${"~".repeat(Math.ceil(text.length * 0.4))}]`;
}
