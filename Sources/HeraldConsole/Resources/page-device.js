// One device: its apps, what waits for it, and its last notifications.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { ago, day, fullTime, number, short, shortTime, when } from "./format.js";
import { connection, labels } from "./page-devices.js";
import { address, link, place } from "./router.js";
import { grouped, search } from "./search.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { button, copyButton, empty, facts, failureNote, loading, section } from "./ui.js";
import { t } from "./words.js";

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
    return `device:${this.id}`;
  }

  get path() {
    return `/v1/devices/${encodeURIComponent(this.id)}`;
  }

  async start() {
    const { app } = this;
    try {
      this.device = await get(this.path);
      this.failure = null;
    } catch (error) {
      app.notice(error);
      this.failure = error;
      return app.draw();
    }
    app.draw();
    const apps = Array.isArray(this.device.apps) ? Promise.resolve(this.device.apps) : get(`${this.path}/apps`).then((answer) => answer.items ?? answer);
    const [known, found] = await Promise.allSettled([apps, search({ q: this.linesQuery, limit: 200 })]);
    this.apps = known.value ?? [];
    this.lines = found.value?.items ?? [];
    return app.draw();
  }

  catchUp() {
    this.start();
  }

  hear(kind, data) {
    if (kind === "lines" && this.lines) this.lines = [...[...data.items].reverse(), ...this.lines].slice(0, 400);
  }

  view() {
    const { device, failure, app } = this;
    const head = h("div", { key: "head", class: "page-head" }, link("/devices", { class: "back" }, t("place.devices")),
      h("h1", { dir: "auto" }, device?.name ?? this.id), device && connection(device),
      device && h("div", { class: "actions" }, app.may("sender") && !device.revoked && link(address("/compose", { device: device.id }), { class: "button" }, t("device.send")),
        app.may("admin") && !device.revoked && button(t("revoke"), () => this.askRevoke())));
    if (failure) return [head, failure.status === 404 ? empty(t("device.unknown")) : failureNote(failure, () => this.start())];
    if (!device) return [head, loading()];
    return [head, h("div", { key: "columns", class: "columns" }, h("div", { class: "stack" }, this.about(), this.appList()), this.last())];
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

  about() {
    const { device } = this;
    return section(t("device.about"), { key: "about" }, facts([
      [t("device.id"), h("span", { class: "mono" }, device.id)], [t("device.since"), device.connected && device.connected_since && ago(device.connected_since)],
      [t("device.seen"), !device.connected && device.last_seen && `${fullTime(device.last_seen)} (${ago(device.last_seen)})`], [t("device.from"), device.last_address ?? device.address],
      [t("series.notifications_waiting"), device.waiting !== undefined && number(device.waiting)], [t("devices.labels"), labels(device)],
      [t("device.enrolled"), fullTime(device.created)], [t("devices.ends"), `${day(device.expires)} (${ago(device.expires)})`], [t("devices.revoked"), device.revoked && fullTime(device.revoked)],
      [t("device.serial"), h("span", { class: "mono" }, device.serial)],
    ]));
  }

  appList() {
    const { apps, app, device } = this;
    if (!apps) return loading();
    return section(t("devices.apps"), { key: "apps" }, apps.length === 0 ? empty(t("device.noapps")) : table({
      caption: t("devices.apps"), rows: apps, id: (one) => `${one.topic} ${one.environment}`, columns: [
        { label: t("col.app"), place: "main", cell: (one) => [h("span", null, one.topic), one.environment === "sandbox" && h("span", { class: "tag" }, t("env.sandbox"))] },
        { label: t("device.registered"), place: "labelled", cell: (one) => one.registered && when(one.registered, day(one.registered)) },
        { label: t("col.state"), place: "side", cell: (one) => one.enabled === false && h("span", { class: "tag", "data-tone": "waiting" }, t("device.disabled")) },
        { label: t("device.token"), cell: (one) => app.may("sender") && !device.revoked && copyButton(app, `token ${one.topic} ${one.environment}`, () => this.token(one), t("device.copy"), one.topic) },
      ],
    }));
  }

  async token(one) {
    const answer = await this.app.act(() => post(`${this.path}/apps/${encodeURIComponent(one.topic)}/token`, { environment: one.environment }));
    return answer?.token ?? "";
  }

  last() {
    const rows = grouped(this.lines ?? []).slice(0, 30);
    return section(t("device.last"), { key: "last", actions: link(address("/notifications", { q: this.linesQuery }), { class: "button" }, t("device.all")) }, !this.lines ? loading() : rows.length === 0 ? empty(t("device.nothing")) : table({
      key: "last", caption: t("device.last"), rows, id: ({ key }) => key, columns: [
        { label: t("col.time"), place: "side", cell: ({ line }) => link(place("notifications", line.unique_id), { "data-row": "" }, when(line.time, shortTime(line.time))) },
        { label: t("col.app"), place: "main", cell: ({ line }) => line.topic }, { label: t("col.state"), cell: ({ line }) => stateTag(line) },
      ],
    }));
  }
}
