// Tools: read a device token, a provider token, a payload, a certificate, or a frame of the binary interface. They make nothing.

import { post } from "./api.js";
import { h } from "./dom.js";
import { json } from "./json.js";
import { checkView } from "./payload-views.js";
import { duration } from "./format.js";
import { link, place } from "./router.js";
import { facts, field, form, note, section, segments } from "./ui.js";
import { t } from "./words.js";

/** The tools, with the lines of their field. */
const TOOLS = { token: 2, jwt: 5, check: 12, certificate: 10, frame: 6 };

export default class Tools {
  constructor(app, route) {
    this.app = app;
    this.texts = {};
    this.answers = {};
    this.follow(route);
  }

  get title() {
    return t("place.tools");
  }

  follow({ query }) {
    this.tool = TOOLS[query.tool] ? query.tool : "token";
  }

  async read() {
    const { app, tool } = this;
    const text = (this.texts[tool] ?? "").trim();
    if (!text) return;
    const answer = await app.act(() => post(`/v1/tools/${tool}`, tool === "check" ? { payload: text } : { text }));
    if (answer) this.answers[tool] = answer;
    app.draw();
  }

  view() {
    const { tool, app } = this;
    const answer = this.answers[tool];
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.tools")), segments(t("place.tools"), tool, Object.keys(TOOLS).map((one) => [one, t(`tools.${one}`)]), (one) => app.setQuery({ tool: one === "token" ? null : one }))),
      h("div", { key: tool, class: "columns even" },
        section(t(`tools.${tool}`), { key: "ask" }, h("p", { class: "quiet" }, t(`tools.${tool}.what`)), form(() => this.read(), { class: "stack" },
          field(`tool-${tool}`, t("tools.text"), this.texts[tool] ?? "", (value) => (this.texts[tool] = value), { area: true, rows: TOOLS[tool], dir: "ltr" }),
          h("div", null, h("button", { type: "submit", class: "button main" }, t("tools.read"))))),
        section(t("tools.answer"), { key: "answer" }, answer ? this.answer(tool, answer) : h("p", { class: "quiet" }, t("tools.none")))),
    ];
  }

  answer(tool, answer) {
    if (tool === "check") return checkView(answer);
    const { items, ...rest } = answer;
    return h("div", { class: "stack" }, Object.keys(rest).length > 0 && this.members(rest), items?.map((item, index) => h("div", { key: index, class: "stack item" }, this.members(item))));
  }

  /** The members of an answer; their names are those of the API. */
  members(answer) {
    const { explanation, verdict, fault, ...rest } = answer;
    const words = explanation ?? verdict ?? fault;
    const isGood = answer.accepted ?? answer.live ?? !fault;
    const value = (name, one) => {
      if (name === "device") return link(place("devices", one), null, one);
      if (name === "claims" || name === "header" || name === "payload") return json(one, name);
      if (name.endsWith("_seconds") && typeof one === "number") return duration(one * 1000);
      if (typeof one === "boolean") return one ? t("drills.yes") : t("drills.no");
      return Array.isArray(one) ? one.join(", ") : typeof one === "object" ? JSON.stringify(one) : String(one);
    };
    return [
      words && note(isGood ? "good" : "waiting", h("p", { class: "sentence", dir: "auto" }, words)),
      facts(Object.entries(rest).filter(([, one]) => one !== null && one !== "" && one?.length !== 0).map(([name, one]) => [titled(name), value(name, one)])),
    ];
  }
}

/** A member's name as a title: `age_seconds` is "Age". */
function titled(name) {
  return (name[0].toUpperCase() + name.slice(1)).replace(/_seconds$/, "").replaceAll("_", " ");
}
