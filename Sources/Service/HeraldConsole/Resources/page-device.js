// One device: its apps, what waits for it, and its last notifications.

import { ask, get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { ago, day, fullTime, number, short, shortTime, when } from "./format.js";
import { code, connection, labels, labelsOf } from "./page-devices.js";
import { address, link, place } from "./router.js";
import { grouped, search, within } from "./search.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { button, copyButton, dotted, empty, facts, failureNote, field, form, loading, section } from "./ui.js";
import { t } from "./words.js";

/** Notifications that the page lists. */
const LAST = 50;
/** The time after which the device is read again when something happened, in milliseconds. */
const AGAIN_TIME = 2000;

export default class Device {
  constructor(app, route) {
    this.app = app;
    this.id = route.id;
  }

  get title() {
    return this.device?.name ?? short(this.id, 20);
  }

  get want() {
    return ["lines"];
  }

  get linesQuery() {
    return within(`device:${this.id}`, this.app.environment);
  }

  follow() {
    this.start();
  }

  get path() {
    return `/v1/devices/${encodeURIComponent(this.id)}`;
  }

  async start() {
    const { app } = this;
    if (!(await this.readDevice())) return;
    try {
      this.lines = (await search({ q: this.linesQuery, limit: 200 })).items;
    } catch (error) {
      app.notice(error);
      this.lines = [];
    }
    app.draw();
  }

  catchUp() {
    this.start();
  }

  hear(kind, data) {
    if (kind !== "lines" || !this.lines) return;
    this.lines = [...[...data.items].reverse(), ...this.lines].slice(0, 400);
    // What waits has changed.
    this.again ??= setTimeout(() => {
      this.again = null;
      this.readDevice();
    }, AGAIN_TIME);
  }

  close() {
    clearTimeout(this.again);
  }

  /** Whether the device was read. */
  async readDevice() {
    try {
      this.device = await get(this.path);
      this.failure = null;
    } catch (error) {
      this.app.notice(error);
      this.failure = error;
    }
    this.app.draw();
    return !this.failure;
  }

  view() {
    const { device, failure, app } = this;
    const head = h("div", { key: "head", class: "page-head" }, link("/devices", { class: "back" }, t("place.devices")),
      h("h1", { dir: "auto" }, device?.name ?? this.id), device && connection(device),
      device && h("div", { class: "actions" }, app.may("sender") && !device.revoked && link(address("/compose", { device: device.id }), { class: "button" }, t("device.send")),
        app.may("admin") && device.connected && button(t("device.disconnect"), () => this.disconnect()), app.may("admin") && !device.revoked && button(t("device.invite"), () => this.invite()), app.may("admin") && !device.revoked && button(t("revoke"), () => this.askRevoke())));
    if (failure) return [head, failure.status === 404 ? empty(t("device.unknown")) : failureNote(failure, () => this.start())];
    if (!device) return [head, loading()];
    return [head, this.invitation && section(t("device.invite"), { key: "invite" }, code(app, this.invitation)), h("div", { key: "columns", class: "columns uneven even" }, h("div", { class: "stack" }, this.about(), this.appList()), this.last())];
  }

  askRevoke() {
    const { device, app } = this;
    app.ask({
      title: t("device.revoke.title"), words: t("device.revoke.words", { name: device.name ?? device.id }), deed: t("revoke"), typed: device.name ?? device.id,
      act: async () => {
        await app.act(() => post(`${this.path}/revoke`), t("revoked.done"));
        this.start();
      },
    });
  }

  /** Makes an invitation for this device, which keeps its identifier. */
  async invite() {
    const made = await this.app.act(() => post("/v1/invitations", { device: this.device.id }));
    if (made) this.invitation = made.code;
    this.app.draw();
  }

  async disconnect() {
    await this.app.act(() => post(`${this.path}/disconnect`), t("device.disconnected"));
    this.start();
  }

  async label() {
    await this.app.act(() => ask("PUT", `${this.path}/labels`, { labels: labelsOf(this.labelled) }), t("device.labelled"));
    this.labelled = undefined;
    this.start();
  }

  about() {
    const { device } = this;
    const labelled = this.labelled ?? Object.entries(device.labels ?? {}).map(([name, value]) => (value ? `${name}=${value}` : name)).join(" ");
    return section(t("device.about"), { key: "about" }, facts([
      [t("device.id"), h("span", { class: "mono" }, device.id)], [t("device.since"), device.connected && device.connected_since && ago(device.connected_since)],
      [t("device.seen"), !device.connected && device.last_seen && `${fullTime(device.last_seen)} (${ago(device.last_seen)})`], [t("device.from"), device.last_address],
      [t("series.notifications_waiting"), device.waiting !== undefined && number(device.waiting)], [t("devices.labels"), labels(device)],
      [t("device.enrolled"), fullTime(device.created)], [t("devices.ends"), `${day(device.expires)} (${ago(device.expires)})`], [t("devices.revoked"), device.revoked && fullTime(device.revoked)],
      [t("device.serial"), h("span", { class: "mono" }, device.serial)],
    ]), this.app.may("admin") && !device.revoked && form(() => this.label(), { class: "find-row" },
      field("labels", t("devices.labels"), labelled, (value) => (this.labelled = value), { kind: "bare find-wide", placeholder: "site=Berlin ring=beta" }), h("button", { type: "submit", class: "button" }, t("device.label"))));
  }

  appList() {
    const { app, device } = this;
    const apps = (device.apps ?? []).filter(({ environment }) => !app.environment || environment === app.environment);
    return section(t("devices.apps"), { key: "apps" }, apps.length === 0 ? empty(t("device.noapps")) : table({
      caption: t("devices.apps"), rows: apps, id: (one) => `${one.topic} ${one.environment}`, columns: [
        { label: t("col.app"), place: "main", cell: (one) => [h("span", null, dotted(one.topic)), one.environment === "sandbox" && [" ", h("span", { class: "tag" }, t("env.sandbox"))], ended(one)] },
        { label: t("device.waits"), place: "labelled", cell: ({ waiting }) => waiting && link(place("notifications", waiting.unique_id), null, when(waiting.received, ago(waiting.received)), h("span", { class: "unseen" }, ` ${waiting.id}`)) },
        { label: t("device.registered"), place: "labelled", isName: true, cell: (one) => one.registered && when(one.registered, day(one.registered)) },
        { label: t("device.token"), cell: (one) => app.may("sender") && !device.revoked && !one.removed && copyButton(app, `token ${one.topic} ${one.environment}`, () => this.token(one), t("device.copy"), one.topic) },
      ],
    }));
  }

  async token(one) {
    const answer = await this.app.act(() => post(withQuery(`${this.path}/apps/${encodeURIComponent(one.topic)}/token`, { environment: one.environment })));
    return answer?.token ?? "";
  }

  last() {
    const rows = grouped(this.lines ?? []).slice(0, LAST);
    return section(t("device.last"), { key: "last", actions: link(address("/notifications", { q: this.linesQuery }), { class: "button" }, t("device.watch")) }, !this.lines ? loading() : rows.length === 0 ? empty(t("device.nothing")) : table({
      key: "last", caption: t("device.last"), rows, id: ({ key }) => key, columns: [
        { label: t("col.time"), place: "side", cell: ({ line }) => link(place("notifications", line.unique_id), { "data-row": "" }, when(line.time, shortTime(line.time))) },
        { label: t("col.app"), place: "main", cell: ({ line }) => dotted(line.topic) }, { label: t("col.state"), cell: ({ line }) => stateTag(line) },
      ],
    }));
  }
}

/** Whether an app is gone from its device, or may not receive. */
function ended({ removed, enabled }) {
  if (removed) return [" ", h("span", { class: "tag" }, t("device.removed"))];
  return !enabled && [" ", h("span", { class: "tag", "data-tone": "waiting" }, t("device.disabled"))];
}
