// Tools: read a device token, a provider token, a payload, a certificate, or a frame of the binary interface. They make nothing.

import { post } from "./api.js";
import { h } from "./dom.js";
import { json } from "./json.js";
import { checkView } from "./payload-views.js";
import { link, place } from "./router.js";
import { facts, field, form, note, section, segments } from "./ui.js";
import { has, t } from "./words.js";

/** The tools, with the member of the request that has the text. */
const TOOLS = { token: "token", jwt: "token", check: "payload", certificate: "pem", frame: "hex" };
const ROWS = { token: 2, jwt: 5, check: 12, certificate: 10, frame: 6 };

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
    const answer = await app.act(() => post(`/v1/tools/${tool}`, { [TOOLS[tool]]: text }));
    if (answer) this.answers[tool] = answer;
    app.draw();
  }

  view() {
    const { tool, app } = this;
    const answer = this.answers[tool];
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.tools")), segments(t("place.tools"), tool, Object.keys(TOOLS).map((one) => [one, t(`tools.${one}`)]), (one) => app.setQuery({ tool: one === "token" ? null : one }))),
      h("div", { key: tool, class: "columns" },
        section(t(`tools.${tool}`), { key: "ask" }, h("p", { class: "quiet" }, t(`tools.${tool}.what`)), form(() => this.read(), { class: "stack" },
          field(`tool-${tool}`, t("tools.text"), this.texts[tool] ?? "", (value) => (this.texts[tool] = value), { area: true, rows: ROWS[tool], dir: "ltr" }),
          h("div", null, h("button", { type: "submit", class: "button main" }, t("tools.read"))))),
        section(t("tools.answer"), { key: "answer" }, answer ? this.answer(tool, answer) : h("p", { class: "quiet" }, t("tools.none")))),
    ];
  }

  answer(tool, answer) {
    if (tool === "check") return checkView(answer);
    const { explanation, problem, error, ...rest } = answer;
    const words = explanation ?? problem ?? error;
    const known = Object.entries(rest).filter(([, value]) => value === null || typeof value !== "object");
    const deep = Object.entries(rest).filter(([, value]) => value && typeof value === "object" && Object.keys(value).length > 0);
    return [
      words && note("waiting", h("p", { dir: "auto" }, words)),
      facts(known.map(([name, value]) => [has(`tools.name.${name}`) ? t(`tools.name.${name}`) : name.replaceAll("_", " "), name === "device" && value ? link(place("devices", value), null, value) : value === true ? t("drills.yes") : value === false ? t("drills.no") : value === null ? "" : String(value)])),
      deep.map(([name, value]) => h("div", { key: name, class: "stack" }, h("h3", null, has(`tools.name.${name}`) ? t(`tools.name.${name}`) : name.replaceAll("_", " ")), Array.isArray(value) && value.every((one) => typeof one === "string") ? h("ul", { class: "reasons" }, value.map((one) => h("li", { key: one, dir: "auto" }, one))) : json(JSON.stringify(value), name))),
    ];
  }
}
