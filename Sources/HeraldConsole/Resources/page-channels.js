// Channels: the list, new ones, and their end.

import { ask, get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { day, number, when } from "./format.js";
import { address, link } from "./router.js";
import { Pages, table } from "./table.js";
import { button, choice, empty, failureNote, field, form, loading, section } from "./ui.js";
import { t } from "./words.js";

const LIMIT = 50;

export default class Channels {
  constructor(app, route) {
    this.app = app;
    this.set(route);
    this.list = new Pages(app, (after) => get(withQuery("/v1/channels", { limit: LIMIT, after, topic: this.topic })));
  }

  get title() {
    return t("place.channels");
  }

  set({ query }) {
    this.topic = query.topic ?? "";
    this.typed = this.topic;
    this.isAdding = query.add === "1";
  }

  follow(route) {
    const { topic } = this;
    this.set(route);
    if (topic !== this.topic) this.list.start();
  }

  start() {
    return this.list.start();
  }

  catchUp() {
    this.list.start();
  }

  mayChange({ environment }) {
    return this.app.may(environment === "production" ? "admin" : "sender");
  }

  view() {
    const { app, list } = this;
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.channels")), app.may("sender") && button(t("channels.add"), () => app.setQuery({ add: this.isAdding ? null : 1 }), { kind: "main", "aria-expanded": String(this.isAdding) })),
      this.isAdding && app.may("sender") && this.add(),
      h("div", { key: "filter", class: "box find" }, form(() => app.setQuery({ topic: this.typed.trim() }), { class: "find-row", role: "search" },
        field("channel-topic", t("channels.topic"), this.typed, (value) => (this.typed = value), { type: "search", kind: "bare find-wide", placeholder: t("channels.topic") }), h("button", { type: "submit", class: "button" }, t("find.send")))),
      list.failure && failureNote(list.failure, () => list.start()),
      !list.items ? !list.failure && loading() : list.items.length === 0 ? empty(this.topic ? t("find.none") : t("channels.none")) : h("div", { key: "list", class: "box flush" }, table({
        caption: t("place.channels"), rows: list.items, id: ({ id, environment }) => `${id} ${environment}`, columns: [
          { label: t("col.app"), place: "main", cell: ({ topic, environment }) => [h("span", null, topic), environment === "sandbox" && h("span", { class: "tag" }, t("env.sandbox"))] },
          { label: t("channels.id"), isCode: true, cell: ({ id }) => id },
          { label: t("channels.policy"), place: "labelled", cell: ({ policy, stored }) => (policy ? (stored ? t("channels.kept") : t("channels.keeps")) : t("channels.keeps.not")) },
          { label: t("channels.subscribers"), place: "labelled", isNumber: true, cell: ({ subscribers }) => number(subscribers) },
          { label: t("channels.published"), place: "wide", isNumber: true, cell: ({ published }) => number(published) },
          { label: t("channels.delivered"), place: "labelled", isNumber: true, cell: ({ delivered }) => number(delivered) },
          { label: t("provider.made"), place: "wide", cell: ({ created }) => when(created, day(created)) },
          { label: t("channels.deeds"), cell: (one) => this.mayChange(one) && h("span", { class: "actions" },
            link(address("/compose", { channel: one.id, topic: one.topic, environment: one.environment }), { class: "button" }, t("channels.send"), h("span", { class: "unseen" }, ` ${one.topic} ${one.id}`)),
            button(t("channels.delete"), () => this.askDelete(one), { about: `${one.topic} ${one.id}` })) },
        ],
      })),
      list.moreButton(),
    ];
  }

  add() {
    const { app } = this;
    this.draft ??= { topic: this.topic, environment: "sandbox", policy: "1" };
    const { draft } = this;
    const set = (name) => (value) => {
      draft[name] = value;
      app.draw();
    };
    const send = async () => {
      const made = await app.act(() => post("/v1/channels", { topic: draft.topic.trim(), environment: draft.environment, policy: Number(draft.policy) }), t("channels.made"));
      if (made === undefined) return;
      app.setQuery({ add: null });
      this.list.start();
    };
    return section(t("channels.add"), { key: "add" }, form(send, { class: "stack" }, h("div", { class: "fields" },
      field("new-topic", t("channels.topic"), draft.topic, set("topic")),
      choice("new-environment", t("col.environment"), draft.environment, [["sandbox", t("env.sandbox")], ...(app.may("admin") ? [["production", t("env.production")]] : [])], set("environment")),
      choice("new-policy", t("channels.policy"), draft.policy, [["1", t("channels.keeps")], ["0", t("channels.keeps.not")]], set("policy"))),
    h("div", null, h("button", { type: "submit", class: "button main" }, t("channels.make")))));
  }

  askDelete(one) {
    const { app } = this;
    app.ask({
      title: t("channels.delete.title"), words: t("channels.delete.words", { topic: one.topic, id: one.id }), deed: t("channels.delete"),
      act: async () => {
        await app.act(() => ask("DELETE", withQuery(`/v1/channels/${encodeURIComponent(one.id)}`, { topic: one.topic, environment: one.environment })), t("channels.deleted"));
        this.list.start();
      },
    });
  }
}
