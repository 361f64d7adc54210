// Counts: how many notifications arrived, were replaced, expired or were refused, by the hour.

import { get, withQuery } from "./api.js";
import { bars } from "./charts.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { button, empty, failureNote, field, form, loading, note, section, segments } from "./ui.js";
import { t } from "./words.js";

const HOUR = 3_600_000;
const RANGES = { "24h": 24, "7d": 168, "31d": 744 };
const GROUPS = ["state", "type", "priority"];
/** The outcomes of the chart with their colours, those of Now; a notification is stored at most for a time, so stored ones are in the table only. */
const PARTS = { delivered: 0, delivered_from_storage: 1, replaced: 3, discarded: 4, refused_by_device: 5, refused: 6 };

export default class Counts {
  constructor(app, route) {
    this.app = app;
    this.set(route);
  }

  get title() {
    return t("place.counts");
  }

  set({ query }) {
    this.topic = query.app ?? "";
    this.typed = this.topic;
    this.range = RANGES[query.range] ? query.range : "24h";
    this.by = GROUPS.includes(query.by) ? query.by : "state";
    this.environment = query.environment ?? null;
  }

  follow(route) {
    const asked = () => [this.topic, this.range, this.by, this.environment].join("|");
    const before = asked();
    this.set(route);
    if (asked() !== before) this.start();
  }

  async start() {
    const asked = (this.asked = {});
    const read = (by) => get(withQuery("/v1/tallies", { app: this.topic, environment: this.environment, by, from: `-${RANGES[this.range] - 1}h` }));
    try {
      const [outcomes, sums] = await Promise.all([read("outcome"), read(this.by)]);
      if (asked === this.asked) Object.assign(this, { outcomes, sums, failure: null });
    } catch (error) {
      this.app.notice(error);
      if (asked === this.asked) this.failure = error;
    }
    this.app.draw();
  }

  catchUp() {
    this.start();
  }

  view() {
    const { app, failure, outcomes } = this;
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.counts")), h("p", { class: "quiet" }, t("counts.what"))),
      h("div", { key: "filter", class: "box find" }, form(() => app.setQuery({ app: this.typed.trim() }), { class: "find-row", role: "search" },
        field("counts-app", t("col.app"), this.typed, (value) => (this.typed = value), { type: "search", kind: "bare find-wide", placeholder: t("counts.app") }), h("button", { type: "submit", class: "button" }, t("find.send")))),
      failure && failureNote(failure, () => this.start()),
      !outcomes ? !failure && loading() : [this.missing(), h("div", { key: "columns", class: "columns uneven" }, this.chart(), this.list())],
    ];
  }

  missing() {
    const nodes = this.outcomes.missing_nodes;
    return nodes.length > 0 && note("waiting", h("p", null, t("counts.missing", { nodes: nodes.join(", ") })));
  }

  chart() {
    const { from, to, hours, sums } = this.outcomes;
    const first = Date.parse(from);
    const count = Math.min(Math.max(Math.round((Date.parse(to) - first) / HOUR) || 1, 1), RANGES["31d"]);
    const names = Object.keys(PARTS).filter((name) => sums[name]);
    const range = segments(t("now.range"), this.range, Object.keys(RANGES).map((one) => [one, t(`counts.${one}`)]), (one) => this.app.setQuery({ range: one === "24h" ? null : one }));
    const series = names.map((name) => ({ label: t(`series.${name}`), part: PARTS[name], values: new Array(count).fill(0) }));
    for (const { time, counts } of hours) {
      const at = Math.round((Date.parse(time) - first) / HOUR);
      if (at >= 0 && at < count) names.forEach((name, index) => (series[index].values[at] = counts[name] ?? 0));
    }
    const label = t("counts.chart.label", { range: t(`counts.${this.range}`), list: names.map((name) => `${t(`series.${name}`)} ${number(sums[name])}`).join(", ") });
    return section(t("now.chart"), { key: "outcomes", actions: range },
      names.length === 0 ? empty(t("counts.none"), this.topic && button(t("counts.all"), () => this.app.setQuery({ app: null }))) : bars(this.app, { key: "counts", end: Date.parse(to), step: 3600, label, unit: (value) => t("counts.hourly", { n: number(value) }), series }));
  }

  list() {
    const rows = Object.entries(this.sums.sums).sort(([, one], [, other]) => other - one);
    const group = segments(t("counts.by"), this.by, GROUPS.map((one) => [one, t(`counts.${one}`)]), (one) => this.app.setQuery({ by: one === "state" ? null : one }));
    return section(t("counts.sums"), { key: "sums", actions: group }, rows.length === 0 ? empty(t("counts.none")) : table({
      key: "sums", caption: t("counts.sums"), rows, id: ([name]) => name, columns: [
        { label: t(`counts.${this.by}`), place: "main", cell: ([name]) => (this.by === "state" ? stateTag({ state: name }) : name) },
        { label: t("counts.lines"), place: "side", isNumber: true, cell: ([, count]) => number(count) },
      ],
    }));
  }
}
