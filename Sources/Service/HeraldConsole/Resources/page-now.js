// Now: whether the service is well, and what happens.

import { get, withQuery } from "./api.js";
import { bars, spark } from "./charts.js";
import { h } from "./dom.js";
import { ago, clockTime, duration, now, number, short, when } from "./format.js";
import { icon } from "./icons.js";
import { Repeat } from "./repeat.js";
import { address, link, place } from "./router.js";
import { within } from "./search.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { button, dotted, empty, failureNote, note, section, segments } from "./ui.js";
import { t } from "./words.js";

const RANGES = ["15m", "24h", "30d"];
/** The outcomes of the chart; further ones that the service has follow. */
const PARTS = ["delivered", "delivered_from_storage", "stored", "replaced", "discarded", "refused_by_device"];
const TILES = [
  ["requests", "rate"], ["devices_connected", "count"], ["notifications_waiting", "count"], ["requests_refused", "rate"], ["delivery_seconds_p99", "time"],
];
const SHOWN = 12;
const REFRESH = 5000;

export default class Now {
  want = ["lines"];

  constructor(app, route) {
    this.app = app;
    this.lines = [];
    this.problems = null;
    this.history = null;
    this.isPaused = false;
    this.repeat = new Repeat(app, REFRESH, () => {
      this.recent = null;
      return this.readSeries();
    });
    this.set(route);
  }

  get title() {
    return t("place.now");
  }

  set({ query }) {
    this.range = RANGES.includes(query.range) ? query.range : "15m";
    this.hasHistory = query.history === "1";
    this.environment = this.app.environment;
  }

  get linesQuery() {
    return within("", this.environment);
  }

  follow(route) {
    const { range, hasHistory, environment } = this;
    this.set(route);
    if (environment !== this.environment) this.readLines();
    if (range !== this.range) this.readSeries();
    if (hasHistory !== this.hasHistory) this.readProblems();
  }

  async start() {
    await Promise.all([this.readSeries(), this.readProblems(), this.readLines()]);
  }

  catchUp() {
    this.start();
  }

  close() {
    this.repeat.stop();
  }

  async readSeries() {
    const range = this.range;
    try {
      const read = (wanted, names) => get(withQuery("/v1/series", { range: wanted, names: names.join(",") }));
      const [series, recent] = await Promise.all([
        read(range, PARTS), range === "15m" && this.recent ? this.recent : read("15m", TILES.map(([name]) => name)),
      ]);
      if (range === this.range) Object.assign(this, { series, recent, failure: null });
    } catch (error) {
      this.app.notice(error);
      this.failure = error;
    }
    this.repeat.next();
    this.app.draw();
  }

  async readProblems() {
    try {
      this.problems = (await get("/v1/problems")).items;
      this.history = this.hasHistory ? (await get("/v1/problems?history=1")).items : null;
    } catch (error) {
      this.app.notice(error);
      this.problems ??= [];
    }
    this.app.draw();
  }

  async readLines() {
    const { environment } = this;
    try {
      const { items } = await this.app.search({ q: within("", environment), limit: 60 });
      if (environment === this.environment) this.lines = latest(items);
    } catch (error) {
      this.app.notice(error);
    }
    this.app.draw();
  }

  hear(kind, data) {
    if (kind === "problems") this.problems = data.items ?? data;
    if (kind !== "lines" || this.isPaused) return;
    const fresh = data.items.filter(({ environment }) => !this.environment || environment === this.environment);
    this.lines = latest(fresh.reverse().concat(this.lines));
  }

  pause() {
    this.isPaused = !this.isPaused;
    if (!this.isPaused) this.readLines();
    this.app.draw();
  }

  view() {
    return [
      h("h1", { key: "title", class: "unseen" }, t("place.now")),
      this.health(),
      h("ul", { key: "tiles", class: "tiles" }, TILES.map((one) => this.tile(one))),
      this.failure && !this.series ? failureNote(this.failure, () => this.readSeries()) : this.chart(),
      h("div", { key: "columns", class: this.shownProblems.length ? "columns" : "columns whole" }, this.problemList(), this.just()),
    ];
  }

  health() {
    const { status, link: connection } = this.app;
    const problems = this.problems ?? [];
    if (!connection.up) return h("p", { key: "health", class: "health", "data-tone": "bad" }, icon("alert"), h("strong", null, t("now.away")));
    const isReady = status.status ? status.status === "ready" : !problems.some(({ severity }) => severity === "problem");
    const since = status.started && t("now.since", { time: duration(Math.max(0, now() - Date.parse(status.started))) });
    return h("p", { key: "health", class: "health", "data-tone": isReady ? "good" : "bad" }, icon(isReady ? "check" : "alert"),
      h("strong", null, isReady ? t("now.ready") : t("now.not")), since && h("span", { class: "quiet" }, since),
      status.version && h("span", { class: "quiet" }, `Herald ${status.version}`));
  }

  tile([name, kind]) {
    const values = this.recent?.series?.[name];
    const known = (values ?? []).filter((value) => value !== null);
    const last = known.at(-1);
    const live = this.app.counts[name] ?? this.app.status[name];
    const rate = known.length ? known.slice(-10).reduce((sum, value) => sum + value, 0) / Math.min(10, known.length) : null;
    const words = kind === "rate" ? ((live ?? rate) === null ? "–" : t("now.rate", { n: number(live ?? rate) })) : kind === "time" ? ((live ?? last) === undefined ? "–" : duration((live ?? last) * 1000)) : number(live ?? last);
    const label = t(`series.${name}`);
    return h("li", { key: name, class: "tile" }, h("span", { class: "tile-name" }, label), h("strong", null, words),
      known.length > 1 ? spark(values, t("chart.spark", { name: label, low: number(Math.min(...known)), high: number(Math.max(...known)) })) : h("span", { class: "spark" }));
  }

  chart() {
    const { series } = this;
    const names = PARTS.filter((name) => series?.series?.[name]);
    const range = segments(t("now.range"), this.range, RANGES.map((one) => [one, t(`range.${one}`)]), (one) => this.app.setQuery({ range: one === "15m" ? null : one }));
    const sums = names.map((name) => [name, series.series[name].reduce((sum, value) => sum + (value ?? 0), 0) * series.step_seconds]);
    const label = t("now.chart.label", { range: t(`range.${this.range}`), list: sums.map(([name, sum]) => `${t(`series.${name}`)} ${number(sum)}`).join(", ") });
    return section(t("now.chart"), { key: "outcomes", actions: range }, !series ? h("div", { class: "plot-space" }) : bars(this.app, {
      key: "outcomes", end: Date.parse(series.end ?? new Date().toISOString()), step: series.step_seconds, label, unit: (value) => t("now.rate", { n: number(value) }), series: names.map((name) => ({ label: t(`series.${name}`), part: PARTS.indexOf(name), values: series.series[name] })),
    }));
  }

  get shownProblems() {
    return this.history ?? this.problems ?? [];
  }

  problemList() {
    const { problems, shownProblems: shown } = this;
    return section(t("problems.title"), {
      key: "problems", actions: h("a", { class: "button", href: address("/", { range: this.range === "15m" ? null : this.range, history: this.hasHistory ? null : 1 }) }, this.hasHistory ? t("problems.now") : t("problems.history")),
    },
    problems && shown.length === 0 && empty(this.hasHistory ? t("problems.never") : t("problems.none")),
    h("ul", { class: "problems" }, shown.map((problem) => h("li", { key: `${problem.since} ${problem.what}` },
      note(problem.until ? "quiet" : { problem: "bad", warning: "waiting" }[problem.severity] ?? "quiet",
        h("p", { class: "sentence", dir: "auto" }, h("strong", null, problem.what)),
        problem.why && h("p", { dir: "auto" }, problem.why),
        problem.action && h("p", { dir: "auto" }, problem.action),
        h("p", { class: "quiet" }, problem.until ? t("problems.until", { time: ago(problem.until) }) : problem.since && t("problems.since", { time: duration(Math.max(1000, now() - Date.parse(problem.since))) }),
          manual(problem)))))));
  }

  just() {
    const rows = this.lines.slice(0, SHOWN);
    return section(t("just.title"), {
      key: "just", actions: [button(this.isPaused ? t("live.go") : t("live.pause"), () => this.pause(), { icon: this.isPaused ? "play" : "pause" })],
    }, rows.length === 0 ? this.firstSteps() : table({
      key: "just", caption: t("just.title"), id: (line) => line.unique_id, rows, columns: [
        { label: t("col.time"), place: "side", cell: (line) => link(place("notifications", line.unique_id), { "data-row": "" }, when(line.time, clockTime(line.time))) },
        { label: t("col.app"), place: "main", cell: (line) => dotted(line.topic) },
        { label: t("col.device"), place: "end", isName: true, cell: (line) => line.device || (line.devices !== undefined && t("just.devices", { count: line.devices, n: number(line.devices) })) },
        { label: t("col.state"), place: "more", cell: (line) => [stateTag(line), line.replacement && h("span", { class: "quiet" }, ` ${short(line.replacement)}`)] },
      ],
    }));
  }

  firstSteps() {
    return empty(t("just.none"), this.app.may("sender") && h("p", null, link("/compose", { class: "button" }, t("just.compose"))));
  }
}

/** The page that shows more of a problem, or the place in the manual. */
function manual({ kind, link: words }) {
  const page = { refusals: "/refusals", drill: "/drills", moved_clock: "/drills", clock: "/drills" }[kind];
  if (page) return [" · ", link(page, null, t("problems.more"))];
  return words && [" · ", h("code", { class: "mono" }, words.split(/(?=[/#])/).map((part) => [h("wbr"), part]))];
}

/** One line a notification: the newest. `lines` is newest first. */
function latest(lines) {
  const seen = new Set();
  return lines.filter(({ unique_id: id }) => !seen.has(id) && seen.add(id)).slice(0, 60);
}
