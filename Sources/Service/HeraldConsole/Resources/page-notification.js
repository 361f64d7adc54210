// One notification: its life in words, and what to do.

import { get, withQuery } from "./api.js";
import { save } from "./clipboard.js";
import { h } from "./dom.js";
import { bytes, clockTime, duration, fullTime, number, short, when } from "./format.js";
import { icon } from "./icons.js";
import { json } from "./json.js";
import { address, link, place } from "./router.js";
import { grouped, search } from "./search.js";
import { bugReport, curl } from "./snippets.js";
import { stateIcon, stateTag, tone } from "./states.js";
import { button, copyAs, copyButton, dotted, empty, facts, failureNote, loading, note, section } from "./ui.js";
import { t } from "./words.js";

/** Time between looks at a life that goes on: in a cluster, its lines may come at other nodes. */
const RETRY = 3000;
/** Steps of a life that are drawn; a broadcast may have one for each device. */
const MOST_STEPS = 60;

export default class Notification {
  constructor(app, route) {
    this.app = app;
    this.id = route.id;
    this.life = null;
    this.failure = null;
  }

  get title() {
    return t("one.title", { id: short(this.id) });
  }

  /** The lines of the life come with the events of the page. */
  get want() {
    return this.life?.final ? [] : ["lines"];
  }

  get linesQuery() {
    return this.life?.final ? "" : `id:${this.id}`;
  }

  hear(kind) {
    if (kind === "lines") this.read();
  }

  async start() {
    await this.read();
    this.readNeighbours();
    this.readCaught();
    this.watchLife();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.reading?.abort();
  }

  catchUp() {
    this.read();
  }

  async read() {
    this.reading?.abort();
    const request = new AbortController();
    this.reading = request;
    try {
      this.life = await get(`/v1/journal/${encodeURIComponent(this.id)}`, request.signal);
      this.failure = null;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.app.notice(error);
      if (!this.life || error.status === 404) this.failure = error;
      if (error.status === 404) await this.readMissing();
    }
    if (!this.isClosed) this.app.draw();
  }

  /** Which nodes of a cluster could not say whether they have it. */
  async readMissing() {
    try {
      this.missing = (await search({ q: `id:${this.id}`, limit: 1 })).missing_nodes.join(", ");
    } catch (error) {
      this.app.notice(error);
    }
  }

  /** Follows a life until its end. */
  async watchLife() {
    while (!this.isClosed && this.app.session && this.life && !this.life.final) {
      const count = this.life.lines.length;
      await new Promise((done) => (this.timer = setTimeout(done, RETRY)));
      if (!document.hidden && this.app.link.up && this.life.lines.length === count && !this.life.final) await this.read();
      if (this.life.lines.length > count) this.app.say(this.life.state);
    }
    if (!this.isClosed) this.app.listen();
  }

  /** The notifications of the same app for the same device, before and after this one. */
  async readNeighbours() {
    const line = this.life?.lines.at(-1);
    if (!line?.device || !line.topic) return;
    try {
      const { items } = await search({ q: `device:${line.device} topic:${line.topic}`, limit: 200 });
      // In the order in which they came: the end of one may be after the beginning of the next.
      const came = ({ lines }) => Date.parse(lines.at(-1).time);
      const groups = grouped(items).sort((one, other) => came(other) - came(one));
      const at = groups.findIndex(({ line: { unique_id: id } }) => id === line.unique_id);
      if (at < 0) return;
      this.neighbours = { after: groups[at - 1]?.line, before: groups[at + 1]?.line };
    } catch (error) {
      this.app.notice(error);
    }
    this.app.draw();
  }

  async readCaught() {
    if (!this.app.status.catching || !this.app.may("sender") || !this.life) return;
    const [line] = this.life.lines;
    try {
      const { items } = await get(withQuery("/v1/caught", { q: `id:${line?.id ?? this.id}`, limit: 1 }));
      this.caught = items[0];
    } catch (error) {
      this.app.notice(error);
    }
    this.app.draw();
  }

  view() {
    const { life, failure } = this;
    const head = h("div", { key: "head", class: "page-head" }, link("/notifications", { class: "back" }, t("place.notifications")),
      h("h1", null, t("one.heading"), " ", h("span", { class: "mono", dir: "auto" }, life?.lines[0]?.id ?? this.id)),
      h("div", { class: "actions beside" }, copyButton(this.app, "id", life?.lines[0]?.id ?? this.id, t("one.copy.id"))));
    if (failure) return [head, failure.status === 404 || failure.status === 400 ? this.unknown() : failureNote(failure, () => this.start())];
    if (!life) return [head, loading()];
    if (life.lines.length === 0) return [head, this.unknown()];
    const [first, last] = [life.lines[0], life.lines.at(-1)];
    const known = (name) => life.lines.find((line) => line[name] !== undefined && line[name] !== "")?.[name];
    return [head, this.summary(first, last), h("div", { key: "columns", class: "columns uneven" }, h("div", { class: "stack" }, this.steps(), this.copies(first)), h("div", { class: "stack" }, this.request(first, known), this.around(), this.payload()))];
  }

  unknown() {
    const { journal } = this.app.status;
    const reasons = this.failure?.status === 400 ? ["form"] : ["never", journal ? "old" : "empty", "refused", this.missing && "node"].filter(Boolean);
    return empty(t("one.unknown"), h("p", null, t("one.unknown.reasons")),
      h("ul", { class: "reasons" }, reasons.map((reason) => h("li", { key: reason }, t(`one.unknown.${reason}`, { time: journal && fullTime(journal.first), nodes: this.missing })))),
      h("p", { class: "actions" }, link("/refusals", { class: "button" }, t("place.refusals")), button(t("failure.retry"), () => this.start())));
  }

  summary(first, last) {
    const words = this.life.words?.at(-1);
    const took = Date.parse(last.time) - Date.parse(first.time);
    return h("div", { key: "summary", class: "summary", "data-tone": tone(last.state) },
      h("span", { class: "summary-icon" }, icon(stateIcon(last.state))),
      h("div", null,
        h("p", { class: "summary-state", dir: "auto" }, [last.state, last.reason].filter(Boolean).join(": "), last !== first && h("span", { class: "quiet" }, ` ${t("one.after", { time: duration(took) })}`)),
        words?.hint && h("p", { dir: "auto" }, words.hint),
        last.replacement && h("p", null, link(place("notifications", last.replacement), null, t("one.by", { id: short(last.replacement) }))),
        !this.life.final && h("p", { class: "quiet" }, t("one.watching"))));
  }

  steps() {
    const { lines, words = [] } = this.life;
    const shown = lines.slice(0, MOST_STEPS);
    return section(t("one.life"), { key: "life" }, h("ol", { class: "life" }, shown.map((line, index) => h("li", { key: index, "data-tone": tone(line.state) },
      h("span", { class: "life-dot" }, icon(stateIcon(line.state))),
      h("div", { class: "life-words" },
        h("p", { class: "life-head" }, h("strong", { dir: "auto" }, [line.state, line.reason].filter(Boolean).join(": ")), when(line.time, clockTime(line.time, true)), index > 0 && h("span", { class: "quiet" }, ` +${duration(Date.parse(line.time) - Date.parse(lines[index - 1].time))}`), line.node && h("span", { class: "quiet" }, ` ${line.node}`)),
        line.devices !== undefined && h("p", null, t("just.devices", { count: line.devices, n: number(line.devices) })),
        line.device && line.device !== lines[0].device && h("p", null, h("bdi", null, line.device)),
        words[index]?.words && words[index].words !== line.state && h("p", { dir: "auto" }, words[index].words),
        line.explanation && h("p", { dir: "auto" }, line.explanation),
        words[index]?.hint && index < lines.length - 1 && h("p", { class: "quiet", dir: "auto" }, words[index].hint))))),
    lines.length > shown.length && h("p", { class: "quiet" }, t("one.steps", { count: lines.length - shown.length, n: number(lines.length - shown.length) })),
    this.life.missing_nodes?.length > 0 && note("bad", h("p", null, t("find.missing", { nodes: this.life.missing_nodes.join(", ") }))));
  }

  request(first, known) {
    return section(t("one.request"), { key: "request" }, facts([
      [t("col.app"), dotted(first.topic)], [t("col.device"), first.device && link(place("devices", first.device), null, first.device)],
      [t("col.environment"), first.environment && t(`env.${first.environment}`)],
      [t("col.by"), known("provider") && link(place("providers", known("provider")), null, known("provider"))],
      [t("col.type"), known("type")], [t("col.priority"), known("priority")], [t("col.size"), known("size") !== undefined && bytes(known("size"))],
      [t("one.answer"), known("status") && [known("status"), known("reason")].join(" ")],
      [t("one.received"), fullTime(first.time)], ["apns-unique-id", h("span", { class: "mono" }, first.unique_id)],
    ]));
  }

  around() {
    const { neighbours } = this;
    if (!neighbours?.before && !neighbours?.after) return null;
    const one = (line, words) => line && h("li", { key: words }, h("span", { class: "quiet" }, words), link(place("notifications", line.unique_id), { class: "mono" }, short(line.id)), stateTag(line));
    return section(t("one.around"), { key: "around" }, h("ul", { class: "around" }, one(neighbours.before, t("one.before")), one(neighbours.after, t("one.next"))));
  }

  payload() {
    const { caught } = this;
    return section(t("one.payload"), { key: "payload" }, caught ? json(caught.payload)
      : h("p", { class: "quiet" }, this.app.status.catching ? t("one.payload.other") : t("one.payload.off")));
  }

  async copyReport() {
    if (this.life?.lines.length) await copyAs(this.app, "report", bugReport(this.life, this.app.status));
  }

  copies(first) {
    const text = () => JSON.stringify(this.life, null, 2);
    const { app } = this;
    return h("div", { key: "copies", class: "actions" },
      app.may("sender") && first.device && link(address("/compose", { device: first.device, topic: first.topic, environment: first.environment }), { class: "button" }, t("one.again")),
      copyButton(app, "curl", () => curl(first, this.caught, app.status), t("one.copy.curl")),
      button(app.copied === "report" ? t("copy.done") : t("one.copy.report"), () => this.copyReport(), { key: "report", icon: app.copied === "report" ? "check" : "copy", "aria-keyshortcuts": "b" }),
      copyButton(app, "json", text, t("one.copy.json")),
      button(t("one.save"), () => save(`${first.id}.json`, text(), "application/json"), { icon: "download" }));
  }
}
