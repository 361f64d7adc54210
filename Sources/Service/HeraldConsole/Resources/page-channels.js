// Channels: the list, their use, a form for a new one, and deletion.

import { ask, get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { day, number, when } from "./format.js";
import { address, link } from "./router.js";
import { Pages, table } from "./table.js";
import { button, choice, copyButton, empty, failureNote, field, form, loading, note, section } from "./ui.js";
import { t } from "./words.js";

const LIMIT = 50;

export default class Channels {
  constructor(app, route) {
    this.app = app;
    this.draft = null;
    this.made = null;
    this.apps = [];
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
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.channels")), h("p", { class: "quiet" }, t("channels.what")),
        app.may("sender") && button(t("channels.add"), () => this.openForm(), { kind: "main" })),
      this.draft && this.maker(),
      h("div", { key: "filter", class: "box find" }, form(() => app.setQuery({ topic: this.typed.trim() }), { class: "find-row", role: "search" },
        field("channel-topic", t("channels.topic"), this.typed, (value) => (this.typed = value), { type: "search", kind: "bare find-wide", placeholder: t("channels.topic") }), h("button", { type: "submit", class: "button" }, t("find.send")))),
      list.failure && failureNote(list.failure, () => list.start()),
      !list.items ? !list.failure && loading() : list.items.length === 0 ? empty(this.topic ? t("find.none") : t("channels.none")) : h("div", { key: "list", class: "box flush" }, table({
        caption: t("place.channels"), rows: list.items, id: ({ id, environment }) => `${id} ${environment}`, columns: [
          { label: t("col.app"), place: "main", cell: ({ topic, environment }) => [h("span", null, topic), environment === "sandbox" && [" ", h("span", { class: "tag" }, t("env.sandbox"))]] },
          { label: t("channels.id"), isCode: true, cell: ({ id }) => id },
          { label: t("channels.policy"), place: "labelled", cell: ({ policy, stored }) => (policy ? (stored ? t("channels.kept") : t("channels.keeps")) : t("channels.keeps.not")) },
          { label: t("channels.subscribers"), place: "labelled", isNumber: true, cell: ({ subscribers }) => number(subscribers) },
          { label: t("channels.published"), place: "wide", isNumber: true, cell: ({ published }) => number(published) },
          { label: t("channels.delivered"), place: "labelled", isNumber: true, cell: ({ delivered }) => number(delivered) },
          { label: t("provider.made"), place: "wide", isName: true, cell: ({ created }) => when(created, day(created)) },
          { label: t("channels.deeds"), cell: (one) => this.deeds(one) },
        ],
      })),
      list.moreButton(),
    ];
  }

  deeds(one) {
    const about = () => h("span", { class: "unseen" }, ` ${one.topic} ${one.id}`);
    const found = address("/notifications", { q: `topic:${one.topic} environment:${one.environment} type:liveactivity` });
    return h("div", { class: "actions" }, link(found, { class: "button" }, t("channels.journal"), about()), this.mayChange(one) && [
      link(address("/compose", { channel: one.id, topic: one.topic, environment: one.environment }), { class: "button" }, t("channels.send"), about()),
      button(t("channels.delete"), () => this.askDelete(one), { about: `${one.topic} ${one.id}` }),
    ]);
  }

  askDelete(one) {
    const { app, list } = this;
    app.ask({
      title: t("channels.delete.title"), deed: t("channels.delete"),
      words: t("channels.delete.words", { id: one.id, topic: one.topic, environment: t(`env.${one.environment}`), count: one.subscribers, n: number(one.subscribers) }),
      act: async () => {
        await app.act(() => ask("DELETE", `/v1/channels/${encodeURIComponent(one.id)}`), t("channels.deleted"));
        list.start();
      },
    });
  }

  openForm() {
    this.draft = { topic: this.topic, environment: "sandbox", policy: "1" };
    this.made = null;
    this.app.draw();
    // Apps are suggested; another one may have a channel too.
    get("/v1/apps?limit=100").then(({ items }) => {
      this.apps = [...new Set(items.map(({ topic }) => topic))];
      this.app.draw();
    }).catch((error) => this.app.notice(error));
  }

  maker() {
    const { app, draft, made } = this;
    const set = (name) => (value) => (draft[name] = value);
    const send = async () => {
      const order = { topic: draft.topic.trim(), environment: draft.environment, policy: Number(draft.policy) };
      this.made = (await app.act(() => post("/v1/channels", order))) ?? null;
      if (this.made) this.list.start();
    };
    return section(t("channels.add"), { key: "make", actions: button(t("close"), () => {
      this.draft = null;
      app.draw();
    }) }, made && [
      note("good", h("p", null, t("channels.made", { topic: made.topic })), h("p", { class: "mono", dir: "ltr" }, made.id)),
      h("div", { class: "actions" }, copyButton(app, "new-channel", made.id, t("one.copy.id"), made.id)),
    ], form(send, { class: "stack" }, h("div", { class: "fields" },
      field("new-topic", t("channels.topic"), draft.topic, set("topic"), { required: true, maxlength: 200, list: "known-apps", placeholder: "com.example.app" }),
      h("datalist", { id: "known-apps" }, this.apps.map((topic) => h("option", { key: topic, value: topic }))),
      choice("new-environment", t("channels.environment"), draft.environment, ["sandbox", ...(app.may("admin") ? ["production"] : [])].map((one) => [one, t(`env.${one}`)]), set("environment")),
      choice("new-policy", t("channels.policy"), draft.policy, [["1", t("channels.keeps")], ["0", t("channels.keeps.not")]], set("policy"))),
    h("div", null, h("button", { type: "submit", class: "button main" }, t("channels.make")))));
  }
}
