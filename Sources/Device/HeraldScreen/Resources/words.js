// Times, languages and names in words, in the device's language where the device shows them.

/**
 * A word of the device's own interface, in its language, with its parts filled in: `{app}`, `{count}`, `{time}`.
 * The screen has that language, so it needs no tag of its own there.
 */
export function word({ words }, name, parts = {}) {
  return (words[name] ?? name).replaceAll(/\{(\w+)\}/g, (_, part) => parts[part] ?? "");
}

/** The language of a text of an app that may also be the device's own word; an unknown one is tagged as such. */
export function languageOf({ words }, text, language) {
  return text === words.close || text === words.view ? words.language : language ?? "";
}

/** The device's first language as the browser knows it, or English. */
export function locale(device) {
  const tag = (device.languages[0] ?? "en").replaceAll("_", "-");
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? "en";
  } catch {
    return "en";
  }
}

const RIGHT_TO_LEFT = new Set(["ar", "dv", "fa", "he", "ks", "ku", "ps", "sd", "ug", "ur", "yi"]);

/** The writing direction of a language. */
export function direction(tag) {
  return RIGHT_TO_LEFT.has(tag.split("-")[0].toLowerCase()) ? "rtl" : "ltr";
}

/** The English name of a language with its code, or the code alone. */
export function languageName(tag) {
  try {
    const name = new Intl.DisplayNames(["en"], { type: "language" }).of(tag.replaceAll("_", "-"));
    return name && name !== tag ? `${name} (${tag})` : tag;
  } catch {
    return tag;
  }
}

/** The formats of times that were used before: they are costly to make. */
const formats = new Map();

/** A format of times, in the device's time zone. */
function format(tag, { time_zone: timeZone }, options) {
  const key = JSON.stringify([tag, timeZone, options]);
  if (!formats.has(key)) formats.set(key, make(tag, timeZone, options));
  return formats.get(key);
}

function make(tag, timeZone, options) {
  try {
    return new Intl.DateTimeFormat(tag, { ...options, timeZone });
  } catch {
    // The browser does not know the zone.
    return new Intl.DateTimeFormat(tag, options);
  }
}

/** The time of day on the device, without "AM" and "PM", which would not fit. */
export function clock(device, seconds) {
  const parts = format(locale(device), device, { hour: "numeric", minute: "2-digit" }).formatToParts(seconds * 1000);
  return parts.filter(({ type }) => type !== "dayPeriod").map(({ value }) => value).join("").trim();
}

/** The day on the device. */
export function day(device, seconds) {
  return format(locale(device), device, { weekday: "long", day: "numeric", month: "long" }).format(seconds * 1000);
}

/** The time of day to the second, for the log. */
export function moment(device, seconds) {
  return format("en-GB", device, { timeStyle: "medium" }).format(seconds * 1000);
}

/** A day and a time, for what is to come. */
export function instant(device, seconds) {
  return format("en-GB", device, { dateStyle: "medium", timeStyle: "medium" }).format(seconds * 1000);
}

/** How long ago something was. */
export function ago(then, now, tag) {
  const seconds = Math.max(0, Math.round(now - then));
  const words = new Intl.RelativeTimeFormat(tag, { numeric: "auto", style: "narrow" });
  if (seconds < 60) return words.format(0, "second");
  if (seconds < 3600) return words.format(-Math.floor(seconds / 60), "minute");
  if (seconds < 86400) return words.format(-Math.floor(seconds / 3600), "hour");
  return words.format(-Math.floor(seconds / 86400), "day");
}

/** The first letter of a name (grapheme cluster). */
export function initial(name) {
  const [first] = new Intl.Segmenter().segment(name.trim() || "?");
  return first.segment.toLocaleUpperCase();
}

/** Distinguishable hues on which white letters are readable. */
const HUES = [205, 222, 250, 275, 300, 325, 345, 8, 150, 170, 188, 238];

/** A stable hue for a text. */
export function hue(text) {
  let sum = 17;
  for (const letter of text) sum = (Math.imul(sum, 279) + letter.codePointAt(0)) >>> 0;
  sum = Math.imul(sum ^ (sum >>> 15), 0x2c1b3c6d) >>> 0;
  return HUES[((sum ^ (sum >>> 12)) >>> 0) % HUES.length];
}
