// Devices: the list, and an invitation for a new one.

import { ask, get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { ago, day, number, when } from "./format.js";
import { link, place } from "./router.js";
import { Pages, table } from "./table.js";
import { button, choice, copyButton, empty, failureNote, field, form, loading, note, section } from "./ui.js";
import { t } from "./words.js";

const LIMIT = 50;
/** The selections of the list, by their names in the address. */
const WHICH = { true: { connected: true }, false: { connected: false }, offline: { offline_days: 7 }, unused: { unused: true } };

export default class Devices {
  constructor(app, route) {
    this.app = app;
    this.set(route);
    this.list = new Pages(app, (after) => get(withQuery("/v1/devices", { limit: LIMIT, after, q: this.q, ...WHICH[this.connected] })));
    this.invitations = new Pages(app, (after) => get(withQuery("/v1/invitations", { limit: LIMIT, after })));
    this.invitation = null;
    this.asked = null;
  }

  get title() {
    return t("place.devices");
  }

  set({ query }) {
    this.q = query.q ?? "";
    this.typed = this.q;
    this.connected = query.connected ?? "";
  }

  follow(route) {
    this.set(route);
    this.list.start();
  }

  start() {
    return this.list.start();
  }

  catchUp() {
    this.list.start();
  }

  view() {
    const { app, list } = this;
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.devices")),
        app.status.devices_connected !== undefined && h("span", { class: "quiet" }, t("devices.connected", { count: app.status.devices_connected, n: number(app.status.devices_connected) })),
        app.may("admin") && button(t("devices.invite"), () => this.openInvitation(), { kind: "main" })),
      this.asked && this.invite(),
      h("div", { key: "filter", class: "box find" }, form(() => app.setQuery({ q: this.typed.trim() }), { class: "find-row", role: "search" },
        field("device-q", t("devices.find"), this.typed, (value) => (this.typed = value), { type: "search", kind: "bare find-wide", placeholder: t("devices.find") }),
        choice("connected", t("devices.which"), this.connected, [["", t("devices.all")], ["true", t("devices.on")], ["false", t("devices.off")], ["offline", t("devices.offline")], ["unused", t("devices.unused")]], (value) => app.setQuery({ connected: value }), { kind: "bare" }),
        h("button", { type: "submit", class: "button" }, t("find.send")))),
      list.failure && failureNote(list.failure, () => list.start()),
      !list.items ? !list.failure && loading() : list.items.length === 0 ? this.nothing() : h("div", { key: "list", class: "box flush" }, table({
        caption: t("place.devices"), rows: list.items, id: ({ id }) => id, columns: [
          { label: t("col.device"), place: "main", cell: (device) => link(place("devices", device.id), { "data-row": "" }, device.name || device.id) },
          { label: t("col.state"), place: "side", cell: connection },
          { label: t("devices.apps"), isNumber: true, place: "labelled", cell: ({ apps }) => apps !== undefined && number(Array.isArray(apps) ? apps.length : apps) },
          { label: t("series.notifications_waiting"), isNumber: true, place: "labelled", cell: ({ waiting }) => waiting !== undefined && number(waiting) },
          { label: t("devices.labels"), cell: labels },
          { label: t("device.from"), place: "wide", cell: ({ last_address: address }) => address },
          { label: t("devices.ends"), place: "labelled", isName: true, cell: ({ expires }) => when(expires, day(expires)) },
        ],
      })),
      list.moreButton(),
    ];
  }

  nothing() {
    const { app } = this;
    if (this.q || this.connected) return empty(t("find.none"), button(t("devices.every"), () => app.setQuery({ q: null, connected: null })));
    return empty(t("devices.none"), h("p", null, t("devices.none.hint")));
  }

  openInvitation() {
    this.asked = { name: "", uses: "1", days: "1", labels: "" };
    this.invitation = null;
    this.invitations.start();
  }

  invite() {
    const { asked, invitation, app } = this;
    const send = async () => {
      const body = { name: asked.name.trim() || undefined, uses: Number(asked.uses), days: Number(asked.days), labels: asked.labels.trim() ? labelsOf(asked.labels) : undefined };
      const made = await app.act(() => post("/v1/invitations", body));
      if (made) this.invitation = made;
      this.invitations.start();
      app.draw();
    };
    const set = (name) => (value) => (asked[name] = value);
    const text = invitation?.code ?? "";
    return section(t("devices.invite"), { key: "invite", actions: button(t("close"), () => {
      this.asked = null;
      app.draw();
    }) }, invitation ? code(app, text)
      : form(send, { class: "stack" }, h("div", { class: "fields" },
        field("invite-name", t("devices.name"), asked.name, set("name"), { maxlength: 64 }),
        field("invite-uses", t("devices.uses"), asked.uses, set("uses"), { type: "number", min: 1 }), field("invite-days", t("providers.days"), asked.days, set("days"), { type: "number", min: 1 }), field("invite-labels", t("devices.invite.labels"), asked.labels, set("labels"), { placeholder: t("devices.invite.labels.hint") })),
      h("div", null, h("button", { type: "submit", class: "button main" }, t("devices.make")))), this.invited());
  }

  /** The invitations that are open. */
  invited() {
    const { app, invitations } = this;
    const open = (invitations.items ?? []).filter(({ state }) => state === "open");
    const withdraw = async ({ id }) => {
      await app.act(() => ask("DELETE", `/v1/invitations/${encodeURIComponent(id)}`), t("invitations.withdrawn"));
      invitations.start();
    };
    return open.length > 0 && table({
      key: "invitations", caption: t("invitations.title"), rows: open, id: ({ id }) => id, columns: [
        { label: t("invitations.title"), place: "main", cell: ({ name, id }) => name ?? id }, { label: t("invitations.used"), place: "labelled", cell: ({ used, uses }) => t("invitations.of", { used: number(used), uses: number(uses) }) },
        { label: t("tokens.ends"), place: "labelled", cell: ({ expires }) => when(expires, day(expires)) }, { label: t("channels.deeds"), cell: (one) => button(t("invitations.withdraw"), () => withdraw(one), { about: one.name ?? one.id }) },
      ],
    });
  }
}

/** Labels from words: `site=Berlin beta`. */
export function labelsOf(text) {
  const words = text.split(/\s+/).filter(Boolean);
  return Object.fromEntries(words.map((word) => [word.split("=")[0], word.includes("=") ? word.slice(word.indexOf("=") + 1) : ""]));
}

/** The code of an invitation, which is shown once. */
export function code(app, text) {
  return [note("good", h("p", null, t("devices.invited"))), h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": t("devices.invite") }, text), h("div", { class: "actions" }, copyButton(app, "invitation", text, t("one.copy.id")))];
}

/** Whether a device is there, in words. */
export function connection(device) {
  if (device.revoked) return h("span", { class: "tag", "data-tone": "bad" }, t("devices.revoked"));
  if (device.connected) return h("span", { class: "tag", "data-tone": "good" }, t("devices.here"));
  return h("span", { class: "tag" }, device.last_seen ? t("devices.seen", { time: ago(device.last_seen) }) : t("devices.away"));
}

export function labels(device) {
  const all = Object.entries(device.labels ?? {});
  return all.length > 0 && h("span", { class: "labels" }, all.map(([name, value]) => h("span", { key: name, class: "tag" }, Array.isArray(device.labels) ? value : value === "" ? name : `${name}=${value}`)));
}
