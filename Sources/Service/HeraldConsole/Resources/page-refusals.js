// Refusals: what providers were refused, in groups, with samples explained.

import { get } from "./api.js";
import { spark } from "./charts.js";
import { h } from "./dom.js";
import { ago, number, share, short, when } from "./format.js";
import { Repeat } from "./repeat.js";
import { address, link, place } from "./router.js";
import { empty, failureNote, loading, note } from "./ui.js";
import { has, t } from "./words.js";

const REFRESH = 10_000;

export default class Refusals {
  constructor(app, route) {
    this.app = app;
    this.repeat = new Repeat(app, REFRESH, () => this.start());
    this.set(route);
  }

  get title() {
    return t("place.refusals");
  }

  set({ query }) {
    this.opened = query.open ?? null;
  }

  follow(route) {
    this.set(route);
  }

  async start() {
    try {
      const { items } = await get("/v1/refusals");
      this.groups = [...items].sort((one, other) => Date.parse(other.last) - Date.parse(one.last));
      this.failure = null;
    } catch (error) {
      this.app.notice(error);
      this.failure = error;
    }
    this.repeat.next();
    this.app.draw();
  }

  catchUp() {
    this.start();
  }

  close() {
    this.repeat.stop();
  }

  view() {
    const { failure } = this;
    const groups = this.groups?.filter(({ environment }) => !this.app.environment || environment === this.app.environment);
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.refusals")), h("p", { class: "quiet" }, t("refusals.what"))),
      failure && !groups && failureNote(failure, () => this.start()),
      !groups ? !failure && loading() : groups.length === 0 ? empty(t(this.groups.length ? "find.none" : "refusals.none")) : h("ul", { key: "groups", class: "stack" }, groups.map((group) => this.group(group))),
    ];
  }

  group(group) {
    const key = [group.provider, group.topic, group.environment, group.reason].join("|");
    const isOpen = this.opened === key;
    const advice = `refusal.${group.reason}`;
    return h("li", { key, class: "box refusal" },
      h("div", { class: "refusal-head" },
        h("div", { class: "grow" },
          h("h2", null, h("bdi", null, group.reason), h("span", { class: "tag", "data-tone": "bad" }, group.status)),
          h("p", { class: "quiet", dir: "auto" }, [group.provider || t("refusals.nobody"), group.topic, t(`env.${group.environment}`)].filter(Boolean).join(" · ")),
          h("p", { class: "quiet" }, t("refusals.times", { first: ago(group.first), last: ago(group.last) }))),
        h("div", { class: "refusal-count" }, h("strong", null, number(group.count)), group.share !== undefined && group.share !== null && h("span", { class: "quiet" }, t("refusals.share", { share: share(group.share) }))),
        h("div", { class: "refusal-spark" }, spark(group.per_minute, t("refusals.spark", { reason: group.reason, count: number(group.per_minute.reduce((sum, count) => sum + count, 0)) })),
          h("span", { class: "quiet" }, t("refusals.hour")))),
      has(advice) && note("quiet", h("p", null, h("strong", null, t("refusals.do")), " ", t(advice))),
      h("div", { class: "actions" },
        group.samples.length > 0 && h("button", { type: "button", class: "button", "aria-expanded": String(isOpen), "data-row": "", on: { click: () => this.app.setQuery({ open: isOpen ? null : key }) } },
          t("refusals.samples", { count: group.samples.length, n: number(group.samples.length) }), h("span", { class: "unseen" }, ` ${group.reason}`)),
        link(address("/notifications", { q: `state:refused reason:${group.reason}`, environment: group.environment }), { class: "button" }, t("refusals.search"), h("span", { class: "unseen" }, ` ${group.reason}`)),
        group.provider && link(place("providers", group.provider), { class: "button" }, t("refusals.provider"), h("span", { class: "unseen" }, ` ${group.provider}`))),
      isOpen && h("ul", { class: "samples" }, group.samples.map((sample, index) => h("li", { key: index },
        h("p", null, when(sample.time), " ", sample.id && link(place("notifications", sample.id), { class: "mono" }, short(sample.id))), h("p", { class: "sentence", dir: "auto" }, sample.explanation)))));
  }
}
