// Inbox: the payloads that are caught for tests.

import { ask, get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { ago, clockTime, number, shortTime, when } from "./format.js";
import { icon } from "./icons.js";
import { json } from "./json.js";
import { checkView, previewView, question } from "./payload-views.js";
import { address, link, place } from "./router.js";
import { curl } from "./snippets.js";
import { table } from "./table.js";
import { button, code, copyButton, empty, facts, failureNote, field, form, loading, note, section, segments } from "./ui.js";
import { t } from "./words.js";

const LIMIT = 100;
const MOST = 500;
const TABS = ["payload", "preview", "check", "headers", "code"];

export default class Inbox {
  want = ["caught"];

  constructor(app, route) {
    this.app = app;
    this.items = null;
    /** The opened messages that are not in the list, by identifier; null for one that is gone. */
    this.older = new Map();
    this.wanted = "all";
    this.set(route);
  }

  get title() {
    return t("place.inbox");
  }

  set({ query }) {
    this.q = query.q ?? "";
    this.typed = this.q;
    this.opened = query.open ?? null;
    this.tab = TABS.includes(query.tab) ? query.tab : "payload";
  }

  follow(route) {
    const { q, opened } = this;
    this.set(route);
    if (q !== this.q) this.start();
    if (opened !== this.opened) {
      Object.assign(this, { check: null, preview: null });
      // With less room the message takes the place of the list.
      if (matchMedia("(max-width: 1023px)").matches) scrollTo(0, 0);
    }
    this.read();
  }

  async start() {
    try {
      const answer = await get(withQuery("/v1/caught", { q: this.q, limit: LIMIT }));
      this.items = answer.items;
      this.catching = answer.catching;
      this.failure = null;
    } catch (error) {
      this.app.notice(error);
      this.failure = error;
    }
    this.app.draw();
    this.read();
  }

  catchUp() {
    this.start();
  }

  hear(kind, data) {
    if (kind !== "caught") return;
    clearTimeout(this.timer);
    // The event may be without the payload, so that the list is read again.
    if (data?.items?.every?.((one) => one.payload !== undefined) && !this.q) this.items = [...[...data.items].reverse(), ...(this.items ?? [])].slice(0, MOST);
    else this.timer = setTimeout(() => this.start(), 300);
  }

  close() {
    clearTimeout(this.timer);
  }

  get one() {
    return this.items?.find((item) => keyOf(item) === this.opened) ?? this.older.get(this.opened);
  }

  /** Reads what the open part needs. */
  async read() {
    const { opened, older } = this;
    if (opened && this.items && !this.one && !older.has(opened)) {
      older.set(opened, await get(`/v1/caught/${encodeURIComponent(opened)}`).catch(() => null));
      this.app.draw();
    }
    const { one, tab } = this;
    if (!one || !["check", "preview"].includes(tab) || this[tab]) return;
    const answer = await this.app.act(() => post(`/v1/tools/${tab}`, question(one.payload, one.headers["apns-push-type"])));
    if (answer && this.one === one) this[tab] = answer;
    this.app.draw();
  }

  view() {
    const { app, items, failure } = this;
    const isOff = this.catching?.topics === "off";
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.inbox")), h("p", { class: "quiet list-only" }, this.catching && !isOff && t("inbox.kept", { n: number(this.catching.messages), limit: number(this.catching.limit) })),
        app.may("sender") && items?.length > 0 && button(t("inbox.clear"), () => this.askClear(), { kind: "list-only" })),
      this.switch(isOff),
      // Before it is known whether anything is caught, a key would go to a form that is about to leave.
      this.catching && !isOff && h("div", { key: "filter", class: "box find list-only" }, form(() => app.setQuery({ q: this.typed.trim(), open: null }), { class: "find-row", role: "search" },
        field("inbox-q", t("inbox.find"), this.typed, (value) => (this.typed = value), { type: "search", kind: "bare find-wide", placeholder: "tag:login-test" }), h("button", { type: "submit", class: "button" }, t("find.send")))),
      failure && failureNote(failure, () => this.start()),
      !items ? !failure && loading() : items.length === 0 ? !isOff && this.nothing() : h("div", { key: "columns", class: "columns" }, this.list(), this.detail()),
    ];
  }

  nothing() {
    const { app } = this;
    if (this.q) return empty(t("find.none"), button(t("inbox.all"), () => app.setQuery({ q: null })));
    return empty(t("inbox.none"), app.may("sender") && link("/compose", { class: "button" }, t("just.compose")));
  }

  /** Starts and stops catching. */
  switch(isOff) {
    const { app } = this;
    if (!this.catching) return null;
    const change = async (body) => {
      const state = await app.act(() => ask("PUT", "/v1/catch", body));
      if (state) this.catching = state;
      this.start();
    };
    const words = isOff ? t("inbox.off") : t("inbox.on", { apps: Array.isArray(this.catching.topics) ? this.catching.topics.join(", ") : t("inbox.every") });
    return h("div", { key: "switch", class: "list-only" }, note(isOff ? "quiet" : "waiting", h("div", { class: "note-row" }, h("div", null, h("p", null, words, this.catching.until && ` ${t("inbox.until", { time: ago(this.catching.until) })}`), h("p", { class: "quiet" }, t("inbox.memory"))),
      app.may("admin") && (isOff ? form(() => change({ topics: this.wanted.trim() === "all" ? "all" : this.wanted.split(/[\s,]+/).filter(Boolean), minutes: 60 }), { class: "find-row" },
        field("catch-topics", t("inbox.topics"), this.wanted, (value) => (this.wanted = value), { kind: "find-wide" }), h("button", { type: "submit", class: "button main" }, t("inbox.start")))
        : button(t("inbox.stop"), () => change({ topics: "off" }))))));
  }

  askClear() {
    this.app.ask({
      title: t("inbox.clear.title"), words: this.q ? t("inbox.clear.some", { q: this.q }) : t("inbox.clear.all"), deed: t("inbox.clear"),
      act: async () => {
        await this.app.act(() => ask("DELETE", withQuery("/v1/caught", { q: this.q })), t("inbox.cleared"));
        this.start();
      },
    });
  }

  list() {
    const { app } = this;
    return h("div", { key: "list", class: "box flush" }, table({
      caption: t("place.inbox"), rows: this.items.slice(0, 60), id: keyOf, rowAttributes: (one) => ({ "aria-selected": keyOf(one) === this.opened ? "true" : null }), columns: [
        { label: t("col.time"), place: "side", cell: (one) => link(address("/inbox", { q: this.q, open: keyOf(one), tab: this.tab }), { "data-row": "" }, when(one.time, clockTime(one.time))) },
        { label: t("inbox.text"), place: "main", cell: (one) => [h("span", { class: "clip" }, summary(one.payload)), this.marks(one)] },
      ],
    }));
  }

  /** The answer, the findings, the app and the device of a message. */
  marks(one) {
    const isGood = one.status && one.status < 300;
    return h("span", { class: "marks" },
      h("span", { class: "tag", "data-tone": isGood ? "good" : "bad" }, [one.status ?? t("inbox.noanswer"), one.reason].filter(Boolean).join(" ")),
      one.findings > 0 && h("span", { class: "tag", "data-tone": "waiting" }, icon("alert"), h("span", null, t("check.count", { count: one.findings, n: number(one.findings) }))),
      h("span", { class: "quiet clip", dir: "auto" }, [one.topic, one.device].filter(Boolean).join(" → ")));
  }

  detail() {
    const { one, tab, app } = this;
    if (!one) return section(t("inbox.one"), { key: "detail", kind: this.opened ? "" : "wide-only" }, empty(this.opened && this.items ? t("inbox.gone") : t("inbox.pick")));
    const life = one.unique_id ?? one.id;
    return section(t("inbox.one"), { key: "detail", kind: "is-open", actions: [life && link(place("notifications", life), { class: "button" }, t("one.life")), link(address("/compose", { topic: one.topic, device: one.device, environment: one.environment }), { class: "button", on: { click: () => (app.composed = one.payload) } }, t("one.again"))] },
      link(address("/inbox", { q: this.q }), { class: "back" }, t("place.inbox")),
      facts([[t("col.time"), shortTime(one.time)], [t("col.app"), one.topic], [t("col.device"), one.device], [t("col.by"), one.provider], [t("inbox.tag"), one.tag], [t("one.answer"), [one.status, one.reason].filter(Boolean).join(" ")], [t("inbox.why"), one.explanation]]),
      segments(t("inbox.parts"), tab, TABS.map((name) => [name, t(`inbox.${name}`)]), (name) => app.setQuery({ tab: name === "payload" ? null : name })),
      tab === "payload" ? json(one.payload) : tab === "headers" ? json(JSON.stringify(one.headers), t("inbox.headers"))
        : tab === "code" ? this.codes(one) : (tab === "check" ? checkView(this.check) : previewView(this.preview, one.topic)) ?? loading());
  }

  codes(one) {
    const { app } = this;
    const query = one.tag ? `tag:${/\s/.test(one.tag) ? `"${one.tag}"` : one.tag}` : `id:${one.id}`;
    const texts = [
      [t("inbox.code.curl"), curl({ topic: one.topic }, one, app.status)],
      [t("inbox.code.test"), `curl -H "authorization: Bearer $TOKEN" '${location.origin}${withQuery("/v1/caught", { q: query, wait: 10 })}'`],
    ];
    return h("div", { class: "stack" }, texts.map(([title, text]) => h("div", { key: title, class: "stack close" }, h("h3", null, title), code(text, title), h("div", { class: "actions" }, copyButton(app, title, text, t("one.copy.id"), title)))));
  }
}

function keyOf(one) {
  return one.unique_id ?? one.id ?? one.time;
}

/** The text of an alert, or the beginning of the payload. */
function summary(payload) {
  try {
    const { alert } = JSON.parse(payload).aps;
    const words = typeof alert === "string" ? alert : [alert.title, alert.body ?? alert["loc-key"]].filter(Boolean).join(": ");
    if (words) return words.slice(0, 120);
  } catch {
    // Not what APNs describes: it is shown as it is.
  }
  return payload.slice(0, 120);
}

