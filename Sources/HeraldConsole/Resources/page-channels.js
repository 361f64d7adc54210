// Channels: the list, and their use. Providers make and delete them.

import { get, withQuery } from "./api.js";
import { h } from "./dom.js";
import { day, number, when } from "./format.js";
import { address, link } from "./router.js";
import { Pages, table } from "./table.js";
import { empty, failureNote, field, form, loading } from "./ui.js";
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
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.channels")), h("p", { class: "quiet" }, t("channels.what"))),
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
          { label: t("channels.deeds"), cell: (one) => this.mayChange(one) && link(address("/compose", { channel: one.id, topic: one.topic, environment: one.environment }), { class: "button" }, t("channels.send"), h("span", { class: "unseen" }, ` ${one.topic} ${one.id}`)) },
        ],
      })),
      list.moreButton(),
    ];
  }
}
