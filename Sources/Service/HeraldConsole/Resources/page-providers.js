// Providers: their certificates and keys; new ones without a private key ever coming here.

import { get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { ago, day, number, short, when } from "./format.js";
import { link, place } from "./router.js";
import { Pages, table } from "./table.js";
import { button, code, copyButton, empty, failureNote, field, form, loading, note, section, segments, tick } from "./ui.js";
import { t } from "./words.js";

const LIMIT = 50;
/** A certificate that ends this soon is marked. */
const SOON = 30 * 86_400_000;

export default class Providers {
  constructor(app, route) {
    this.app = app;
    this.query = route.query;
    this.list = new Pages(app, (after) => get(withQuery("/v1/credentials", { limit: LIMIT, after })));
    this.made = null;
  }

  get title() {
    return t("place.providers");
  }

  follow(route) {
    this.query = route.query;
  }

  start() {
    return this.list.start();
  }

  catchUp() {
    this.list.start();
  }

  view() {
    const { app, list, query } = this;
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.providers")),
        app.may("admin") && h("div", { class: "actions" }, button(t("providers.add"), () => {
          this.made = null;
          app.setQuery({ add: query.add ? null : "certificate" });
        }, { kind: "main", "aria-expanded": String(Boolean(query.add)) }))),
      query.add && app.may("admin") && this.add(query.add === "key" ? "key" : "certificate"),
      list.failure && failureNote(list.failure, () => list.start()),
      !list.items ? !list.failure && loading() : list.items.length === 0 ? empty(t("providers.none"), h("p", null, t("providers.none.hint"))) : h("div", { key: "list", class: "box flush" }, table({
        caption: t("place.providers"), rows: list.items, id: ({ id }) => id, columns: [
          { label: t("providers.credential"), place: "main", cell: (one) => link(place("providers", one.id), { "data-row": "" }, short(one.id, 44)) },
          { label: t("col.state"), place: "side", cell: standing },
          { label: t("providers.team"), place: "labelled", cell: ({ team }) => team },
          { label: t("providers.kind"), place: "wide", cell: ({ kind }) => t(`providers.${kind}`) },
          { label: t("providers.topics"), place: "wide", cell: topics },
          { label: t("providers.used"), place: "labelled", cell: ({ last_used: used }) => used && when(used, ago(used)) },
          { label: t("providers.requests"), place: "labelled", isNumber: true, cell: ({ requests }) => requests !== undefined && number(requests) },
          { label: t("providers.refused"), place: "labelled", isNumber: true, cell: ({ refused }) => refused !== undefined && number(refused) },
        ],
      })),
      list.moreButton(),
    ];
  }

  add(kind) {
    const { app } = this;
    this.draft ??= { csr: "", topics: "", days: "365", public_key: "", team: "", production: true, sandbox: true };
    const { draft, made } = this;
    const set = (name) => (value) => {
      draft[name] = value;
      if (typeof value === "boolean") app.draw();
    };
    const send = async () => {
      const environments = ["production", "sandbox"].filter((name) => draft[name]);
      const names = draft.topics.split(/[\s,]+/).filter(Boolean);
      const body = kind === "key" ? { public_key: draft.public_key, team: draft.team.trim(), topics: names, environments } : { csr: draft.csr, topics: names, team: draft.team.trim() || undefined, environments, days: Number(draft.days) };
      const answer = await app.act(() => post(`/v1/credentials/${kind}`, body), t("providers.added"));
      if (!answer) return;
      this.made = answer;
      this.list.start();
    };
    const pem = made?.certificate;
    return section(t("providers.add"), { key: "add", actions: [segments(t("providers.kind"), kind, [["certificate", t("providers.certificate")], ["key", t("providers.key")]], (one) => {
      this.made = null;
      app.setQuery({ add: one });
    }), button(t("close"), () => app.setQuery({ add: null }))] },
    made ? [note("good", h("p", null, t("providers.made", { id: made.id ?? made.credential?.id ?? "" }))), pem && [code(pem, t("providers.certificate")), h("div", { class: "actions" }, copyButton(app, "pem", pem, t("providers.copy")))]]
      : form(send, { class: "stack" },
        kind === "key" ? field("public-key", t("providers.publickey"), draft.public_key, set("public_key"), { area: true, rows: 5, hint: t("providers.publickey.hint") })
          : field("csr", t("providers.csr"), draft.csr, set("csr"), { area: true, rows: 7, hint: t("providers.csr.hint") }),
        h("div", { class: "fields" },
          field("topics", t("providers.topics"), draft.topics, set("topics"), { hint: t("providers.topics.hint") }),
          field("team", t("providers.team"), draft.team, set("team"), { maxlength: 10, hint: t("providers.team.hint") }), kind !== "key" && field("days", t("providers.days"), draft.days, set("days"), { type: "number", min: 1 })),
        h("div", { class: "ticks" }, tick("production", t("env.production"), draft.production, set("production")), tick("sandbox", t("env.sandbox"), draft.sandbox, set("sandbox"))),
        h("div", null, h("button", { type: "submit", class: "button main" }, t("providers.send")))));
  }
}

/** Whether a credential works, in words. */
export function standing(one) {
  if (one.revoked) return h("span", { class: "tag", "data-tone": "bad" }, t("devices.revoked"));
  if (!one.expires) return h("span", { class: "tag", "data-tone": "good" }, t("providers.valid"));
  const left = Date.parse(one.expires) - Date.now();
  if (left < 0) return h("span", { class: "tag", "data-tone": "bad" }, t("providers.expired"));
  return h("span", { class: "tag", "data-tone": left < SOON ? "waiting" : "good", title: day(one.expires) }, t("providers.until", { day: day(one.expires) }));
}

export function topics(one) {
  if (!one.topics?.length) return t("providers.all");
  return one.topics.length > 2 ? `${one.topics.slice(0, 2).join(", ")} +${one.topics.length - 2}` : one.topics.join(", ");
}
