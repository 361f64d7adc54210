// Charts as SVG. Each says in a sentence what it shows, and is a table too.

import { h } from "./dom.js";
import { axisTime, number } from "./format.js";
import { t } from "./words.js";

const WIDTH = 640;
const HEIGHT = 170;
const MOST_BARS = 90;

/** The range that is being dragged: `{ key, from, to }`, indexes of bars. */
let dragged = null;

/** The charts whose table is open. */
const opened = new Set();

/** A small line. Nothing is drawn where nothing is known. */
export function spark(values, label) {
  const shown = squeeze(values ?? [], 48);
  const top = Math.max(...shown.map((value) => value ?? 0), 1e-9);
  const x = (index) => (index / Math.max(shown.length - 1, 1)) * 100;
  let path = "";
  shown.forEach((value, index) => {
    if (value !== null) path += `${path && shown[index - 1] !== null && index > 0 ? "L" : "M"}${x(index).toFixed(1)} ${(23 - (value / top) * 21).toFixed(1)}`;
  });
  return h("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("path", { d: path || "M0 23" }));
}

/** The means of neighbours, so that there are at most `most` values. */
export function squeeze(values, most) {
  const size = Math.ceil(values.length / most);
  if (size <= 1) return values;
  const means = [];
  for (let at = values.length; at > 0; at -= size) {
    const known = values.slice(Math.max(0, at - size), at).filter((value) => value !== null);
    means.unshift(known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null);
  }
  return means;
}

/**
 * Bars over time, of parts on top of each other. `series` is `[{ label, values }]`, oldest first; `end` the last value's end
 * in milliseconds, `step` the seconds of one value; a series may have the number of its colour as `part`. `pick` gets the times of a bar that is clicked, or of those that are dragged over.
 */
export function bars(app, { key = "chart", series, end, step, label, unit = (value) => number(value), pick }) {
  const length = Math.max(0, ...series.map(({ values }) => values.length));
  const size = Math.max(1, Math.ceil(length / MOST_BARS));
  const shown = series.map(({ values, ...one }, place) => ({ part: place, ...one, values: squeeze(values, MOST_BARS) }));
  const count = Math.max(1, ...shown.map(({ values }) => values.length));
  const sums = Array.from({ length: count }, (_, index) => shown.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const top = nice(Math.max(...sums, 0));
  const wide = WIDTH / count;
  const stacked = new Array(count).fill(0);
  const start = (index) => end - (count - index) * step * size * 1000;
  const paths = shown.map(({ label: name, values, part }) => {
    let path = "";
    values.forEach((value, index) => {
      if (!value) return;
      const high = (value / top) * HEIGHT;
      const bottom = HEIGHT - stacked[index];
      stacked[index] += high;
      path += `M${(index * wide + wide * 0.1).toFixed(1)} ${bottom.toFixed(1)}v-${high.toFixed(1)}h${(wide * 0.8).toFixed(1)}v${high.toFixed(1)}z`;
    });
    return h("path", { key: name, class: `part-${part}`, d: path || "M0 0" });
  });
  const barAt = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.min(count - 1, Math.max(0, Math.floor(((clientX - left) / width) * count)));
  };
  const drag = (range) => {
    dragged = range;
    app.draw();
  };
  const own = dragged?.key === key && pick ? [Math.min(dragged.from, dragged.to), Math.max(dragged.from, dragged.to) + 1] : null;
  const on = {
    pointerdown: (event) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      drag({ key, from: barAt(event), to: barAt(event) });
    },
    pointermove: (event) => dragged?.key === key && barAt(event) !== dragged.to && drag({ ...dragged, to: barAt(event) }),
    pointerup: () => {
      if (!own) return;
      drag(null);
      pick(start(own[0]), start(own[1]));
    },
    pointercancel: () => drag(null),
  };
  return h("figure", { key, class: "chart" },
    h("div", { class: "plot" },
      h("div", { class: "scale", "aria-hidden": "true" }, h("span", null, unit(top)), h("span", null, unit(top / 2)), h("span", null, number(0))),
      h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label, class: pick ? "picks" : null, on: pick ? on : {} },
        [0, 0.5, 1].map((share) => h("path", { key: `grid ${share}`, class: "grid", d: `M0 ${HEIGHT - share * HEIGHT}H${WIDTH}` })), paths,
        own && h("path", { key: "dragged", class: "dragged", d: `M${own[0] * wide} 0H${own[1] * wide}V${HEIGHT}H${own[0] * wide}z` })),
      h("div", { class: "axis", "aria-hidden": "true" }, [0, 0.5, 1].map((share) => h("span", { key: share }, axisTime(start(share * count), step))))),
    shown.length > 1 && h("ul", { class: "legend" }, shown.map(({ label: name, part }) => h("li", { key: name }, h("span", { class: `swatch part-${part}` }), name))),
    asTable(app, key, { label, series: shown, start, unit, step }));
}

function asTable(app, key, { label, series, start, unit, step }) {
  const isOpen = opened.has(key);
  const toggle = ({ target }) => {
    if (target.open === opened.has(key)) return;
    if (target.open) opened.add(key);
    else opened.delete(key);
    app.draw();
  };
  const count = Math.max(0, ...series.map(({ values }) => values.length));
  return h("details", { class: "as-table", on: { toggle } },
    h("summary", null, t("chart.table")),
    isOpen && h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      h("table", null, h("caption", { class: "unseen" }, label),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, t("chart.time")), series.map((one) => h("th", { key: one.label, scope: "col", class: "number" }, one.label)))),
        h("tbody", null, Array.from({ length: count }, (_, index) => count - 1 - index).map((index) => h("tr", { key: start(index) },
          h("th", { scope: "row" }, axisTime(start(index), step)),
          series.map((one) => h("td", { key: one.label, class: "number" }, one.values[index] === null ? "–" : unit(one.values[index])))))))));
}

/** The next round number. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= value);
}
