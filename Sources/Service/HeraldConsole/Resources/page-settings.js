// Settings: this browser, sessions, tokens, the audit, and the service.

import { ask, get, keepSecret, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { ago, bytes, day, duration, fullTime, now, number, shortTime, when } from "./format.js";
import { keysAreOn, switchKeys } from "./keys.js";
import { Pages, table } from "./table.js";
import { button, choice, code, copyButton, empty, facts, failureNote, field, form, loading, note, section, segments, tick } from "./ui.js";
import { t } from "./words.js";

export default class Settings {
  constructor(app, route) {
    this.app = app;
    this.draft = { name: "", role: "viewer", days: "90" };
    this.sessions = new Pages(app, (after) => get(withQuery("/v1/sessions", { after })));
    this.tokens = new Pages(app, (after) => get(withQuery("/v1/tokens", { after })));
    this.audit = new Pages(app, (before) => get(withQuery("/v1/audit", { limit: 50, before })));
    this.set(route);
  }

  get title() {
    return t("place.settings");
  }

  set({ query }) {
    this.part = query.part ?? "you";
  }

  get parts() {
    return this.app.session.role === "admin" ? ["you", "tokens", "sessions", "audit"] : ["you"];
  }

  follow(route) {
    this.set(route);
    this.start();
  }

  async start() {
    if (this.parts.includes(this.part)) await this[this.part]?.start?.();
  }

  view() {
    const { app, parts } = this;
    const part = parts.includes(this.part) ? this.part : "you";
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.settings")), parts.length > 1 && segments(t("place.settings"), part, parts.map((one) => [one, t(`settings.${one}`)]), (one) => app.setQuery({ part: one === "you" ? null : one }))),
      part === "you" ? h("div", { key: "you", class: "columns" }, this.you(), this.service()) : this[`${part}View`](),
    ];
  }

  you() {
    const { app } = this;
    const leave = async () => {
      await app.act(() => ask("DELETE", "/v1/session"));
      keepSecret(null);
      app.leave();
    };
    const theme = document.documentElement.dataset.theme ?? "";
    return section(t("settings.you"), { key: "you" }, facts([[t("settings.name"), app.session.name], [t("settings.role"), t(`role.${app.session.role}`)], [t("settings.may"), t(`settings.may.${app.session.role}`)]]),
      choice("theme", t("settings.theme"), theme, [["", t("settings.theme.auto")], ["light", t("settings.theme.light")], ["dark", t("settings.theme.dark")]], (name) => app.setTheme(name)),
      tick("keys-on", t("help.on"), keysAreOn(), (isOn) => {
        switchKeys(isOn);
        app.draw();
      }),
      h("div", { class: "actions" }, button(t("help.title"), () => app.openHelp()), button(t("settings.out"), leave)));
  }

  service() {
    const { status } = this.app;
    return section(t("settings.service"), { key: "service" }, facts([
      [t("settings.version"), status.version], [t("settings.started"), status.started && `${fullTime(status.started)} (${duration(Math.max(0, now() - Date.parse(status.started)))})`],
      [t("series.devices_connected"), number(status.devices_connected)], [t("series.notifications_waiting"), number(status.notifications_waiting)],
      [t("settings.disk"), status.disk_free_bytes !== undefined && bytes(status.disk_free_bytes)], [t("settings.process"), status.pid],
    ]), h("p", null, ["/health", "/metrics", "/openapi.yaml"].map((path, index) => [index ? " · " : "", h("a", { key: path, href: path }, path)])));
  }

  tokensView() {
    const { app, draft, tokens, made } = this;
    const set = (name) => (value) => {
      draft[name] = value;
      app.draw();
    };
    const send = async () => {
      this.made = (await app.act(() => post("/v1/tokens", { name: draft.name.trim(), role: draft.role, days: Number(draft.days) || undefined }))) ?? this.made;
      draft.name = "";
      tokens.start();
    };
    const revoke = (token) => app.ask({
      title: t("tokens.revoke.title"), words: t("tokens.revoke.words", { name: token.name }), deed: t("revoke"),
      act: async () => {
        await app.act(() => ask("DELETE", `/v1/tokens/${encodeURIComponent(token.id)}`), t("revoked.done"));
        tokens.start();
      },
    });
    return h("div", { key: "tokens", class: "stack" },
      app.may("admin") && section(t("tokens.add"), { key: "add" }, made && [note("good", h("p", null, t("tokens.made", { name: made.name }))), code(made.token, t("tokens.add")), h("div", { class: "actions" }, copyButton(app, "new-token", made.token, t("device.copy")))],
        form(send, { class: "stack" }, h("div", { class: "fields" }, field("token-name", t("tokens.name"), draft.name, set("name"), { maxlength: 64, placeholder: "grafana" }),
          choice("token-role", t("settings.role"), draft.role, ["viewer", "sender", "admin"].map((role) => [role, t(`role.${role}`)]), set("role")), field("token-days", t("tokens.days"), draft.days, set("days"), { type: "number", min: 1 })),
        h("div", null, h("button", { type: "submit", class: "button main" }, t("tokens.make"))))),
      this.listed(tokens, t("settings.tokens"), t("tokens.none"), [
        { label: t("tokens.name"), place: "main", cell: ({ name }) => name }, { label: t("settings.role"), place: "side", cell: ({ role }) => t(`role.${role}`) },
        { label: t("provider.made"), place: "labelled", cell: ({ created }) => when(created, day(created)) }, { label: t("tokens.ends"), place: "labelled", cell: ({ expires }) => when(expires, day(expires)) },
        { label: t("providers.used"), place: "labelled", cell: ({ used }) => used && when(used, ago(used)) }, { label: t("channels.deeds"), cell: (token) => app.may("admin") && button(t("revoke"), () => revoke(token), { about: token.name }) },
      ]));
  }

  sessionsView() {
    const { app, sessions } = this;
    const end = async (session) => {
      await app.act(() => ask("DELETE", `/v1/sessions/${encodeURIComponent(session.id)}`), t("sessions.ended"));
      sessions.start();
    };
    return this.listed(sessions, t("settings.sessions"), t("sessions.none"), [
      { label: t("settings.name"), place: "main", cell: ({ name }) => name }, { label: t("settings.role"), place: "side", cell: ({ role }) => t(`role.${role}`) }, { label: t("device.from"), place: "labelled", cell: ({ address }) => address },
      { label: t("sessions.opened"), place: "labelled", cell: ({ opened }) => when(opened, ago(opened)) }, { label: t("providers.used"), place: "labelled", cell: ({ used }) => when(used, ago(used)) }, { label: t("tokens.ends"), place: "labelled", cell: ({ ends }) => when(ends, shortTime(ends)) },
      { label: t("channels.deeds"), cell: (session) => app.may("admin") && button(t("sessions.end"), () => end(session), { about: session.name }) },
    ]);
  }

  auditView() {
    return this.listed(this.audit, t("settings.audit"), t("audit.none"), [
      { label: t("col.time"), place: "side", cell: ({ time }) => when(time, shortTime(time)) }, { label: t("audit.who"), place: "main", cell: ({ who, role }) => [who, role && h("span", { class: "quiet" }, ` ${role}`)] },
      { label: t("audit.deed"), isCode: true, cell: ({ action }) => action }, { label: t("audit.target"), cell: ({ target }) => target }, { label: t("audit.outcome"), cell: outcome },
      { label: t("device.from"), place: "labelled", cell: ({ from }) => from },
    ]);
  }

  listed(list, caption, none, columns) {
    return h("div", { key: caption, class: "stack" }, list.failure && failureNote(list.failure, () => list.start()),
      !list.items ? !list.failure && loading() : list.items.length === 0 ? empty(none) : h("div", { class: "box flush" }, table({ caption, rows: list.items, id: (one) => one.id ?? `${one.time} ${one.action}`, columns })), list.moreButton());
  }
}

/** The answer to what somebody did, with its words if it was refused. */
function outcome({ status, error, more }) {
  return status ? [h("span", { class: "tag", "data-tone": status < 400 ? "good" : "bad" }, String(status)), error && ` ${error}`, more && ` ${t("audit.more", { count: number(more) })}`] : error;
}
