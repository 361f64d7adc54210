// Notifications: search and live.

import { bars } from "./charts.js";
import { save } from "./clipboard.js";
import { h } from "./dom.js";
import { clockTime, duration, fullTime, number, short, shortTime, when } from "./format.js";
import { icon } from "./icons.js";
import { address, link, place } from "./router.js";
import { asCSV, grouped, openTyped, search, took, within } from "./search.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { button, choice, dotted, empty, failureNote, field, form, iconButton, loading } from "./ui.js";
import { keepView, removeView, savedViews } from "./views.js";
import { t } from "./words.js";

const LIMIT = 200;
/** Rows in the page; further ones come with a button. */
const ROWS = 60;
/** The least height of a row. */
const ROW_HEIGHT = 36;
/** Time after the last burst of lines until all rows are drawn again. */
const BURST_TIME = 1000;
const LEAST_BARS = 30;
const MOST_LINES = 2000;
const TERMS = ["topic:", "state:", "device:", "provider:", "reason:", "type:", "priority:", "after:", "-state:delivered"];
const RANGES = ["", "-15m", "-1h", "-24h", "-7d"];

export default class Notifications {
  constructor(app, route) {
    this.app = app;
    this.lines = [];
    this.shown = ROWS;
    this.isPaused = false;
    this.waiting = [];
    this.missed = 0;
    this.burstEnd = -Infinity;
    /** Keys of the rows of the last burst: their places. */
    this.places = new Map();
    this.isSearching = true;
    this.unfolded = new Set();
    this.viewName = null;
    this.views = savedViews();
    this.set(route);
  }

  get title() {
    return [this.q, t("place.notifications")].filter(Boolean).join(" – ");
  }

  get want() {
    return this.isLive ? ["lines"] : [];
  }

  get linesQuery() {
    return this.isLive ? within(this.q, this.environment) : "";
  }

  set({ query }) {
    this.q = query.q ?? "";
    this.typed = this.q;
    this.environment = this.app.environment;
    this.from = query.from ?? "";
    this.to = query.to ?? "";
    this.isLive = query.live !== "0" && !this.to;
  }

  follow(route) {
    const before = this.question;
    this.set(route);
    if (before !== this.question) this.start();
  }

  get question() {
    return [this.q, this.from, this.to, this.environment].join("\n");
  }

  start() {
    this.shown = ROWS;
    this.waiting = [];
    this.missed = 0;
    this.unfolded.clear();
    return this.read(null);
  }

  catchUp() {
    if (this.isLive && !this.isPaused) this.read(null);
  }

  close() {
    this.reading?.abort();
  }

  async read(cursor) {
    this.reading?.abort();
    const request = new AbortController();
    this.reading = request;
    this.isSearching = true;
    this.app.draw();
    const after = this.from && !cursor ? this.from : this.after;
    this.after = after;
    try {
      const answer = await search({ q: within(this.q, this.environment), after: this.from ? after : null, before: this.to || null, limit: LIMIT, cursor }, request.signal);
      const known = new Set(answer.items.map(nameOf));
      const isNew = (line) => !known.has(nameOf(line)) && line.time >= (answer.items[0]?.time ?? "");
      this.lines = cursor ? [...this.lines, ...answer.items] : [...this.waiting.filter(isNew), ...answer.items];
      this.answer = answer;
      this.failure = null;
      this.waiting = [];
      this.missed = 0;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.app.notice(error);
      this.failure = error;
    }
    this.isSearching = false;
    this.app.say(t("find.count", { count: grouped(this.lines).length }));
    this.app.draw();
  }

  hear(kind, data) {
    if (kind === "skipped") this.missed += data?.count ?? data?.lines ?? 1;
    if (kind !== "lines" || !this.isLive) return;
    this.missed += data.more ?? 0;
    if (data.items.length > room()) this.burstEnd = performance.now() + BURST_TIME;
    this.waiting = [...[...data.items].reverse(), ...this.waiting].slice(0, MOST_LINES);
    if (!this.isAway) this.resume();
  }

  /** Whether the reader looks at rows that new lines would move. */
  get isAway() {
    return this.isPaused || this.isSearching || scrollY > 200 || document.activeElement?.matches(".found :focus-visible") || document.querySelector(".found")?.matches(":hover");
  }

  resume() {
    this.lines = [...this.waiting, ...this.lines].slice(0, MOST_LINES);
    this.waiting = [];
    this.app.drawSoon();
  }

  pause() {
    this.isPaused = !this.isPaused;
    if (!this.isPaused) this.resume();
    this.app.draw();
  }

  /** Searches for what was typed, or opens it. */
  async find() {
    const text = this.typed.trim();
    if (await openTyped(this.app, text)) return undefined;
    if (text === this.q) return this.start();
    return this.app.setQuery({ q: text }, false);
  }

  view() {
    const rows = grouped(this.lines);
    return [
      h("h1", { key: "title", class: "unseen" }, t("place.notifications")),
      this.searchForm(),
      this.failure && failureNote(this.failure, () => this.read(null)),
      rows.length > 0 && this.histogram(rows),
      (rows.length > 0 || !this.failure) && this.tools(rows),
      rows.length > 0 ? this.list(rows) : this.isSearching ? loading() : !this.failure && this.nothing(),
      this.end(rows),
    ];
  }

  searchForm() {
    const add = (term) => {
      this.typed = `${this.typed.trim()} ${term}`.trimStart();
      this.app.draw();
      document.getElementById("q").focus();
    };
    return h("div", { key: "search", class: "box find" },
      form(() => this.find(), { class: "find-row", role: "search" },
        h("div", { class: "find-field" }, icon("search"),
          h("input", {
            id: "q", type: "search", "aria-label": t("search.label"), placeholder: t("find.place"), autocomplete: "off", spellcheck: "false", autocapitalize: "off", dir: "auto",
            prop: { value: this.typed }, on: { input: ({ target }) => (this.typed = target.value) },
          })),
        choice("from", t("find.range"), RANGES.includes(this.from) ? this.from : "own", [...RANGES.map((one) => [one, t(`find.range${one || ".any"}`)]), ...(RANGES.includes(this.from) ? [] : [["own", t("find.own")]])],
          (one) => one !== "own" && this.app.setQuery({ from: one, to: null }), { kind: "bare" }),
        h("button", { type: "submit", class: "button main" }, t("find.send"))),
      h("div", { class: "terms", role: "group", "aria-label": t("find.terms") }, TERMS.map((term) => h("button", { key: term, type: "button", class: "chip mono", on: { click: () => add(term) } }, term)),
        h("span", { class: "quiet small-screen-no" }, t("find.paste"))),
      !RANGES.includes(this.from) && h("p", { class: "quiet" }, t("find.between", { from: fullTime(this.from), to: this.to ? fullTime(this.to) : "…" }), " ",
        button(t("find.anytime"), () => this.app.setQuery({ from: null, to: null }))),
      this.saved(), this.viewName !== null && this.viewForm());
  }

  /** The saved views, as links. */
  saved() {
    return this.views.length > 0 && h("div", { key: "views", class: "terms views", role: "group", "aria-label": t("views.title") }, h("span", { class: "quiet" }, t("views.title")),
      this.views.map(({ name, query }) => [
        link(address("/notifications", query), { key: name, class: "button" }, name),
        iconButton(t("views.remove", { name }), "close", () => this.show(removeView(name)), { key: `remove ${name}` }),
      ]));
  }

  show(views) {
    this.views = views;
    this.viewName = null;
    this.app.draw();
  }

  viewForm() {
    const { q, from, to } = this;
    const keep = () => {
      const name = this.viewName.trim();
      if (name) this.show(keepView(name, { q, from, to }));
    };
    return form(keep, { key: "save", class: "find-row views" },
      field("view-name", t("views.name"), this.viewName, (name) => (this.viewName = name), { kind: "bare find-wide", required: true, maxlength: 40, placeholder: t("views.name") }),
      h("button", { type: "submit", class: "button main" }, t("views.keep")), button(t("cancel"), () => this.show(this.views)));
  }

  askName() {
    this.viewName = this.q.slice(0, 40);
    this.app.draw();
  }

  tools(rows) {
    const shown = () => rows.slice(0, this.shown).flatMap(({ lines }) => lines);
    const count = this.waiting.length + this.missed;
    return h("div", { key: "tools", class: "tools" },
      h("p", { class: "grow count" }, h("strong", null, t("find.count", { count: rows.length, n: number(rows.length) })), this.answer && !this.answer.complete && h("span", { class: "quiet" }, ` ${t("find.sofar")}`)),
      this.isLive && count > 0 && button(t("live.new", { count, n: number(count) }), () => (this.missed ? this.read(null) : this.resume()), { kind: "main", key: "new" }),
      !this.to && button(this.isPaused ? t("live.go") : t("live.on"), () => this.pause(), { key: "live", icon: this.isPaused ? "play" : "pause", "aria-pressed": String(!this.isPaused), kind: this.isPaused ? "" : "is-live" }),
      (this.q || this.from) && button(t("views.save"), () => this.askName(), { key: "save" }),
      rows.length > 0 && button("CSV", () => save("notifications.csv", asCSV(shown()), "text/csv"), { icon: "download", key: "csv", about: t("find.shown") }),
      rows.length > 0 && button("JSON", () => save("notifications.jsonl", shown().map((line) => `${JSON.stringify(line)}\n`).join("")), { icon: "download", key: "json", about: t("find.shown") }));
  }

  histogram(rows) {
    const times = rows.map(({ line }) => Date.parse(line.time));
    const [first, last] = [Math.min(...times), Math.max(...times)];
    const step = Math.max(1, Math.ceil((last - first + 1) / 60_000));
    const values = new Array(Math.max(LEAST_BARS, Math.ceil((last - first + 1) / (step * 1000)))).fill(0);
    const end = last + 1;
    for (const time of times) values[Math.max(0, values.length - 1 - Math.floor((last - time) / (step * 1000)))] += 1;
    return h("div", { key: "histogram", class: "histogram" }, bars(this.app, {
      key: "histogram", end, step, label: t("find.histogram", { count: rows.length, n: number(rows.length), from: shortTime(first), to: shortTime(last) }),
      series: [{ label: t("find.matches"), values }], pick: (from, to) => this.app.setQuery({ from: new Date(from).toISOString(), to: new Date(to).toISOString() }, false),
    }));
  }

  list(rows) {
    const unfold = (key) => {
      if (!this.unfolded.delete(key)) this.unfolded.add(key);
      this.app.draw();
    };
    // In a burst nobody reads a row before the next ones take its place. Rows below the window are not drawn, and elements stay for the next rows.
    const isBurst = performance.now() < this.burstEnd && !this.isAway;
    const drawn = rows.slice(0, isBurst ? Math.min(this.shown, room()) : this.shown);
    if (isBurst) this.places = new Map(drawn.map(({ key }, index) => [key, index]));
    return h("div", { key: "found", class: "box flush found" }, table({
      key: "found", caption: t("place.notifications"), rows: drawn, id: ({ key }) => this.places.get(key) ?? key,
      columns: [
        { label: t("col.time"), place: "side", cell: ({ line }) => link(place("notifications", line.unique_id), { "data-row": "" }, when(line.time, `${shortTime(line.time)}`)) },
        { label: t("col.app"), place: "main", cell: ({ line }) => [h("span", null, dotted(line.topic)), line.environment === "sandbox" && [" ", h("span", { class: "tag" }, t("env.sandbox"))]] },
        { label: t("col.device"), place: "end", isName: true, cell: ({ line }) => line.device ? link(place("devices", line.device), null, line.device) : line.devices !== undefined && t("just.devices", { count: line.devices, n: number(line.devices) }) },
        { label: t("col.by"), isName: true, cell: ({ line, lines }) => short((line.provider ?? lines.find(({ provider }) => provider)?.provider) || "", 22), place: "wide" },
        { label: t("col.type"), cell: ({ lines }) => [first(lines, "type"), first(lines, "priority")].filter(Boolean).join(" · "), place: "wide" },
        { label: t("col.state"), place: "more", cell: ({ line }) => [stateTag(line), line.replacement && [" ", link(place("notifications", line.replacement), null, short(line.replacement))]] },
        { label: t("col.took"), isNumber: true, place: "wide", cell: (row) => took(row) === null ? "–" : duration(took(row)) },
        { label: t("col.lines"), place: "no", cell: ({ key, line, lines }) => lines.length > 1 && h("button", {
          type: "button", class: "fold", "aria-expanded": String(this.unfolded.has(key)), "aria-label": t("find.unfold", { id: short(line.id) }), on: { click: () => unfold(key) },
        }, number(lines.length)) },
      ],
      after: ({ key, lines }) => this.unfolded.has(key) && h("ol", { class: "lines" }, [...lines].reverse().map((line, index) => h("li", { key: index }, when(line.time, clockTime(line.time, true)), stateTag(line), line.node && h("span", { class: "quiet" }, line.node)))),
    }));
  }

  nothing() {
    if (!this.q && !this.from) return empty(t("just.none"), this.app.may("sender") && link("/compose", { class: "button" }, t("just.compose")));
    return empty(t("find.none"), h("p", null, t("find.none.hint")), button(t("find.all"), () => this.app.setQuery({ q: null, from: null, to: null }, false)));
  }

  end(rows) {
    const { answer } = this;
    if (rows.length > this.shown) return h("div", { key: "end", class: "more" }, button(t("list.more"), () => {
      this.shown += ROWS;
      this.app.draw();
    }));
    if (!answer) return null;
    const back = answer.searched_back_to && t("find.back", { time: shortTime(answer.searched_back_to), took: duration(answer.took_ms ?? 0) });
    return h("div", { key: "end", class: "more" }, back && h("span", { class: "quiet" }, back), answer.missing_nodes?.length > 0 && h("span", { "data-tone": "bad", class: "tag" }, t("find.missing", { nodes: answer.missing_nodes.join(", ") })),
      answer.cursor && this.lines.length < MOST_LINES && button(t("find.on"), () => {
        this.shown += ROWS;
        this.read(answer.cursor);
      }, { disabled: this.isSearching }));
  }
}

/** Number of rows that fill the window. */
function room() {
  return Math.ceil(innerHeight / ROW_HEIGHT);
}

/** What tells a line from others. */
function nameOf({ time, unique_id: id, device, state }) {
  return [time, id, device, state].join(" ");
}

function first(lines, name) {
  return lines.find((line) => line[name] !== undefined)?.[name];
}
