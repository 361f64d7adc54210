// One credential of a provider: its use, its refusals, its end.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { ago, fullTime, number, shortTime, when } from "./format.js";
import { standing, topics } from "./page-providers.js";
import { address, link, place } from "./router.js";
import { grouped, search } from "./search.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { button, dotted, empty, facts, failureNote, loading, section } from "./ui.js";
import { t } from "./words.js";

export default class Provider {
  constructor(app, route) {
    this.app = app;
    this.id = route.id;
  }

  get title() {
    return this.id;
  }

  get path() {
    return `/v1/credentials/${encodeURIComponent(this.id)}`;
  }

  get query() {
    return `provider:"${this.id.replaceAll('"', "")}"`;
  }

  async start() {
    const { app } = this;
    const [credential, lines, refusals] = await Promise.allSettled([get(this.path), search({ q: this.query, limit: 100 }), get("/v1/refusals")]);
    for (const { reason } of [credential, lines, refusals]) if (reason) app.notice(reason);
    this.failure = credential.reason ?? null;
    this.credential = credential.value;
    this.lines = lines.value?.items ?? [];
    this.refusals = (refusals.value?.items ?? []).filter(({ provider }) => provider === this.id);
    app.draw();
  }

  catchUp() {
    this.start();
  }

  view() {
    const { app, credential, failure } = this;
    const head = h("div", { key: "head", class: "page-head" }, link("/providers", { class: "back" }, t("place.providers")), h("h1", { dir: "auto" }, this.id), credential && standing(credential),
      credential && app.may("admin") && !credential.revoked && h("div", { class: "actions" }, button(t("revoke"), () => this.askRevoke())));
    if (failure) return [head, failure.status === 404 ? empty(t("provider.unknown")) : failureNote(failure, () => this.start())];
    if (!credential) return [head, loading()];
    return [head, h("div", { key: "columns", class: "columns" }, h("div", { class: "stack" }, this.about(), this.refused()), this.last())];
  }

  askRevoke() {
    const { app, id } = this;
    app.ask({
      title: t("provider.revoke.title"), words: t("provider.revoke.words", { name: id }), deed: t("revoke"), typed: id,
      act: async () => {
        await app.act(() => post(`${this.path}/revoke`), t("revoked.done"));
        this.start();
      },
    });
  }

  about() {
    const { credential } = this;
    return section(t("device.about"), { key: "about" }, facts([
      [t("provider.kind"), t(`providers.${credential.kind}`)], [t("providers.team"), credential.team], [t("providers.topics"), topics({ topics: credential.topics?.slice(0, 2) }) && (credential.topics?.join(", ") || t("providers.all"))],
      [t("col.environment"), credential.environments?.map((name) => t(`env.${name}`)).join(", ")], [t("providers.used"), credential.last_used && `${fullTime(credential.last_used)} (${ago(credential.last_used)})`],
      [t("providers.requests"), credential.requests !== undefined && number(credential.requests)], [t("providers.refused"), credential.refused !== undefined && number(credential.refused)],
      [t("provider.made"), fullTime(credential.created)], [t("devices.ends"), credential.expires && `${fullTime(credential.expires)} (${ago(credential.expires)})`],
      [t("devices.revoked"), credential.revoked && fullTime(credential.revoked)], [t("device.serial"), credential.serial && h("span", { class: "mono" }, credential.serial)],
    ]));
  }

  refused() {
    const { refusals } = this;
    return section(t("place.refusals"), { key: "refusals" }, refusals.length === 0 ? empty(t("provider.norefusal")) : h("ul", { class: "around" }, refusals.map((group) => h("li", { key: `${group.reason} ${group.topic}` },
      link(address("/refusals", { open: [group.provider, group.topic, group.reason].join("|") }), null, group.reason), h("span", null, number(group.count)), group.topic && h("span", { class: "quiet", dir: "auto" }, group.topic)))));
  }

  last() {
    const rows = grouped(this.lines).slice(0, 30);
    return section(t("device.last"), { key: "last", actions: link(address("/notifications", { q: this.query }), { class: "button" }, t("device.watch")) }, rows.length === 0 ? empty(t("provider.nothing")) : table({
      key: "last", caption: t("device.last"), rows, id: ({ key }) => key, columns: [
        { label: t("col.time"), place: "side", cell: ({ line }) => link(place("notifications", line.unique_id), { "data-row": "" }, when(line.time, shortTime(line.time))) },
        { label: t("col.app"), place: "main", cell: ({ line }) => dotted(line.topic) }, { label: t("col.device"), isName: true, cell: ({ line }) => line.device }, { label: t("col.state"), cell: ({ line }) => line.state !== "received" && stateTag(line) },
      ],
    }));
  }
}
