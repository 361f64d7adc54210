// Times, numbers and sizes in the reader's own format.

import { h } from "./dom.js";
import { t } from "./words.js";

/** How far the service's clock is from the reader's, in milliseconds. */
let skew = 0;

/** Sets the service's time; what the network takes does not count as a moved clock. */
export function setServiceTime(milliseconds) {
  const distance = milliseconds - Date.now();
  skew = Math.abs(distance) > 5000 ? distance : 0;
}

/** The service's time. */
export const now = () => Date.now() + skew;

/** Formats are costly to make, so that they are made once. */
const made = new Map();

function dates(options) {
  const key = JSON.stringify(options);
  if (!made.has(key)) made.set(key, new Intl.DateTimeFormat(undefined, { hourCycle: "h23", ...options }));
  return made.get(key);
}

/** A text that no line break parts. */
const whole = (text) => text.replaceAll(" ", "\u00a0");

/** A time in a format; what is not a time is shown as none. */
function written(options, time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "–" : whole(dates(options).format(date));
}

const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const DAY = { day: "numeric", month: "short" };

/** The time of day, with milliseconds if asked for. */
export function clockTime(time, hasFraction = false) {
  return written(hasFraction ? { ...TIME, fractionalSecondDigits: 3 } : TIME, time);
}

/** The time of day, with the day if it is not today. */
export function shortTime(time) {
  const isToday = new Date(time).toDateString() === new Date(now()).toDateString();
  return written(isToday ? TIME : { ...DAY, hour: "2-digit", minute: "2-digit" }, time);
}

export function fullTime(time) {
  // A narrow column has the time of day below the day.
  return written({ dateStyle: "medium", timeStyle: "long" }, time).replace(/,\u00a0(?=[^,]*$)/, ", ");
}

export function day(time) {
  return written({ dateStyle: "medium" }, time);
}

/** The end of an interval of a chart, as fine as the interval asks for. */
export function axisTime(time, step) {
  if (step >= 900) return written({ ...DAY, hour: "2-digit", minute: "2-digit" }, time);
  return written(step < 60 ? TIME : { hour: "2-digit", minute: "2-digit" }, time);
}

/** An element with a time, whose title has all of it. */
export function when(time, words = shortTime(time)) {
  return time ? h("time", { datetime: time, title: fullTime(time) }, words) : null;
}

const rounded = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const shares = new Intl.NumberFormat(undefined, { style: "percent", maximumSignificantDigits: 2 });

export function number(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 10 || Number.isInteger(value) ? rounded.format(value) : fine.format(value);
}

export function share(value) {
  return shares.format(value);
}

/** A length of time in milliseconds, in the two largest units that it has; a rough one in as few as say enough. */
export function duration(milliseconds, isRough = false) {
  if (milliseconds === null || milliseconds === undefined || Number.isNaN(milliseconds)) return "–";
  if (milliseconds < 1000) return whole(t("unit.ms", { n: milliseconds < 10 ? fine.format(milliseconds) : Math.round(milliseconds) }));
  const seconds = milliseconds / 1000;
  if (seconds < 60) return whole(t("unit.s", { n: seconds < 10 ? fine.format(seconds) : Math.round(seconds) }));
  const units = [["unit.y", 31_536_000], ["unit.d", 86400], ["unit.h", 3600], ["unit.min", 60], ["unit.s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [[big, size], small] = [units[first], units[first + 1]];
  const count = Math.floor(seconds / size);
  const rest = small && !(isRough && (count > 2 || small[1] === 1)) ? Math.floor((seconds % size) / small[1]) : 0;
  return whole(rest ? `${t(big, { n: count })} ${t(small[0], { n: rest })}` : t(big, { n: count }));
}

/** How long ago a time was, or how far away it is. */
export function ago(time) {
  const distance = now() - Date.parse(time);
  if (Number.isNaN(distance)) return "–";
  const words = duration(Math.max(1000, Math.floor(Math.abs(distance) / 1000) * 1000), true);
  return whole(t(distance >= 0 ? "time.ago" : "time.in", { time: words }));
}

export function bytes(count) {
  return count < 10_000 ? t("unit.B", { n: rounded.format(count) }) : count < 1e7 ? t("unit.KB", { n: fine.format(count / 1024) }) : count < 1e10 ? t("unit.MB", { n: rounded.format(count / 1048576) }) : t("unit.GB", { n: rounded.format(count / 1073741824) });
}

/** The beginning of a long identifier. */
export function short(id, length = 8) {
  return id && id.length > length + 2 ? `${id.slice(0, length)}…` : id ?? "";
}
