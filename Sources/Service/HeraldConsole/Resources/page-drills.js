// Bad days: drills, and the clock.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { duration, fullTime, number, setServiceTime } from "./format.js";
import { Repeat } from "./repeat.js";
import { button, choice, empty, facts, failureNote, field, form, loading, note, section } from "./ui.js";
import { t } from "./words.js";

/** The options of each kind of drill. */
const KINDS = {
  refuse: ["reason", "status", "first", "share", "topic", "token", "retry_after"], latency: ["latency", "first", "share", "topic"], silence: ["first", "share", "topic", "accepted"],
  reset: ["first", "share", "topic", "accepted"], "refuse-stream": ["first", "share", "topic"],
  goaway: ["first", "share", "two_step"], streams: ["streams", "every"], drop: ["first", "share"], shutdown: ["first"],
};
/** The options that are numbers. */
const NUMBERS = ["first", "status", "streams"];
/** The options that are yes or no. */
const CHOICES = ["accepted", "two_step"];
const EXAMPLES = { reason: "Unregistered", status: "502", share: "20%", topic: "com.example.chat", latency: "200ms..2s", retry_after: "30s", first: "2", streams: "1", every: "10s", for: "60s" };
const REFRESH = 2000;

export default class Drills {
  constructor(app) {
    this.app = app;
    this.repeat = new Repeat(app, REFRESH, () => this.start());
    this.draft = { kind: "refuse", for: "60s" };
    this.move = "1h";
  }

  get title() {
    return t("place.drills");
  }

  async start() {
    try {
      const [drills, clock] = await Promise.all([get("/v1/drills"), get("/v1/clock")]);
      Object.assign(this, { drills: drills.items ?? drills, clock, failure: null });
      setServiceTime(clock.milliseconds);
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
    const head = h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.drills")), h("p", { class: "quiet" }, t("drills.what")));
    if (!this.drills) return [head, this.failure ? failureNote(this.failure, () => this.start()) : loading()];
    return [head, h("div", { key: "columns", class: "columns" }, h("div", { class: "stack" }, this.active(), this.time()), this.app.mayDrill() ? this.add() : section(t("drills.start"), { key: "add" }, h("p", { class: "quiet" }, t("drills.role"))))];
  }

  async change(path, body, done) {
    await this.app.act(() => post(path, body), done);
    await this.start();
    this.app.readStatus().catch(() => {});
  }

  active() {
    const { drills, app } = this;
    return section(t("drills.active"), { key: "active", actions: drills.length > 1 && app.mayDrill() && button(t("drills.stop.all"), () => this.change("/v1/drills/stop", {}, t("drill.stopped"))) },
      drills.length === 0 ? empty(t("drills.none")) : h("ul", { class: "problems" }, drills.map((drill) => h("li", { key: drill.id }, note("waiting",
        h("p", { class: "sentence", dir: "auto" }, h("strong", null, drill.what)),
        h("p", { class: "quiet" }, t("drills.facts", { left: duration(drill.seconds_left * 1000), n: number(drill.hits), count: drill.hits }), drill.nodes && ` · ${drill.nodes.join(", ")}`),
        app.mayDrill() && button(t("drill.stop"), () => this.change(`/v1/drills/${drill.id}/stop`, {}, t("drill.stopped")), { about: drill.what }))))));
  }

  add() {
    const { draft, app } = this;
    const set = (name) => (value) => {
      draft[name] = value;
      app.draw();
    };
    const options = KINDS[draft.kind];
    const send = () => {
      const body = { kind: draft.kind, for: draft.for || undefined };
      for (const name of options) if (draft[name]) body[name] = NUMBERS.includes(name) ? Number(draft[name]) : CHOICES.includes(name) ? draft[name] === "yes" : draft[name];
      return this.change("/v1/drills", body, t("drills.started"));
    };
    const input = (name) => CHOICES.includes(name) ? choice(name, t(`drills.${name}`), draft[name] ?? "", [["", t("drills.no")], ["yes", t("drills.yes")]], set(name))
      : field(name, t(`drills.${name}`), draft[name] ?? "", set(name), { placeholder: EXAMPLES[name] ?? "", ...(NUMBERS.includes(name) ? { type: "number", min: 1 } : {}) });
    return section(t("drills.start"), { key: "add" }, form(send, { class: "stack" },
      choice("kind", t("drills.kind"), draft.kind, Object.keys(KINDS).map((kind) => [kind, t(`drills.kind.${kind}`)]), set("kind")),
      h("div", { class: "fields small" }, [...options, "for"].map(input)),
      draft.kind === "shutdown" && note("waiting", h("p", null, t("drills.shutdown"))),
      h("div", null, h("button", { type: "submit", class: "button main" }, t("drills.send")))));
  }

  time() {
    const { clock, app } = this;
    const jump = clock.jump_seconds;
    const send = () => {
      const seconds = secondsOf(this.move);
      if (seconds === null) return app.fail(t("clock.bad"));
      return this.change("/v1/clock/advance", { seconds }, t("clock.moved"));
    };
    return section(t("clock.title"), { key: "clock" }, facts([[t("clock.now"), fullTime(clock.milliseconds)], [t("clock.jump"), jump && duration(Math.abs(jump) * 1000)]]),
      jump && note("bad", h("p", null, t("clock.jumped")), app.may("admin") && button(t("clock.accept"), () => this.change("/v1/clock/accept", {}, t("clock.accepted")))),
      !clock.adjustable ? h("p", { class: "quiet" }, t("clock.fixed")) : app.may("admin") && form(send, { class: "find-row" },
        field("move", t("clock.by"), this.move, (value) => (this.move = value), { kind: "find-wide", placeholder: "1h" }), h("button", { type: "submit", class: "button" }, t("clock.move"))));
  }
}

/** Seconds of `90`, `-5m`, `1h` or `2d`; null if it is none. */
function secondsOf(text) {
  const match = /^(-?\d+(?:\.\d+)?)\s*(s|m|h|d)?$/.exec(text.trim());
  return match ? Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86400 }[match[2] ?? "s"] : null;
}
