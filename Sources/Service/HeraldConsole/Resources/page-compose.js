// Compose: write a notification, check it, send it as a provider does, and watch it arrive.

import { get, post, withQuery } from "./api.js";
import { h } from "./dom.js";
import { duration } from "./format.js";
import { exact, indented } from "./json.js";
import { checkView, previewView, question } from "./payload-views.js";
import { link, place } from "./router.js";
import { curl } from "./snippets.js";
import { stateTag } from "./states.js";
import { table } from "./table.js";
import { choice, copyButton, field, form, note, section, segments, tick } from "./ui.js";
import { t } from "./words.js";

const CHECK_DELAY = 250;
const LIFETIME = { "": null, 0: "0", "1h": 3600, "1d": 86_400, "30d": 30 * 86_400 };
const TYPES = ["alert", "background", "liveactivity", "voip", "complication", "fileprovider", "location", "mdm", "pushtotalk", "widgets", "controls"];
/** What was sent from this tab, newest first; nothing else keeps it. */
const sent = [];
const MOST_SENT = 20;
/** Devices of a label to which one request sends, and the pause after it: a caller has ten requests a second. */
const PER_ORDER = 100;
const ORDER_PAUSE = 100;

export default class Compose {
  constructor(app, { query }) {
    this.app = app;
    this.kind = query.channel ? "channel" : query.label ? "label" : "device";
    this.draft = {
      device: query.device ?? "", token: "", label: query.label ?? "", channel: query.channel ?? "", topic: query.topic ?? "", environment: app.may("admin") && app.environment === "production" ? "production" : "sandbox",
      type: "alert", priority: "10", expiration: "", collapse: "", tag: "",
    };
    this.mode = "form";
    this.text = app.composed ? indented(app.composed) : '{\n  "aps": {\n    "alert": {\n      "title": "Hello",\n      "body": "From the console"\n    },\n    "sound": "default"\n  }\n}';
    if (app.composed) this.mode = "json";
    app.composed = null;
    this.devices = [];
    this.apps = [];
  }

  get title() {
    return t("place.compose");
  }

  async start() {
    await Promise.all([this.readDevice(), this.check()]);
  }

  follow() {
    const { environment } = this.app;
    if (environment === "sandbox" || (environment && this.app.may("admin"))) this.draft.environment = environment;
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  async readDevice() {
    await this.readDevices();
    await this.readApps();
  }

  /** The identifier of the device; what was typed may also be its name. */
  get device() {
    const typed = this.draft.device.trim();
    const named = this.devices.filter(({ name }) => name === typed);
    return named.length === 1 && !this.devices.some(({ id }) => id === typed) ? named[0].id : typed;
  }

  async readDevices() {
    try {
      this.devices = (await get(withQuery("/v1/devices", { limit: 20, q: this.draft.device }))).items ?? [];
    } catch (error) {
      this.app.notice(error);
    }
    this.app.draw();
  }

  async readApps() {
    if (!this.device) return;
    try {
      const { apps = [] } = await get(`/v1/devices/${encodeURIComponent(this.device)}`);
      this.apps = apps.filter(({ removed }) => !removed);
      this.draft.topic ||= this.apps[0]?.topic ?? "";
      this.chooseEnvironment();
    } catch {
      // The name is not complete yet.
      this.apps = [];
    }
    this.app.draw();
  }

  /** Chooses the environment of the device's app, unless the app is in the chosen one, or this person may not send to it. */
  chooseEnvironment() {
    const found = this.apps.filter(({ topic }) => topic === this.draft.topic).map(({ environment }) => environment);
    if (!found.length || found.includes(this.draft.environment)) return;
    if (found[0] === "sandbox" || this.app.may("admin")) this.draft.environment = found[0];
  }

  /** The payload as an object, or null while it is not JSON. */
  get payload() {
    try {
      const value = exact(this.text);
      return value && typeof value === "object" && !Array.isArray(value) ? value : null;
    } catch {
      return null;
    }
  }

  async check() {
    const [text, type] = [this.text, this.draft.type];
    const body = question(text, type);
    const [check, preview] = await Promise.allSettled([post("/v1/tools/check", body), post("/v1/tools/preview", body)]);
    if (text !== this.text || this.isClosed) return;
    Object.assign(this, { checked: check.value, preview: preview.value });
    this.app.draw();
  }

  changed(text) {
    this.text = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), CHECK_DELAY);
    this.app.draw();
  }

  set(name) {
    return (value) => {
      this.draft[name] = value;
      if (name === "device") {
        clearTimeout(this.finding);
        this.finding = setTimeout(() => this.readDevice(), CHECK_DELAY);
      }
      if (name === "type") {
        this.draft.priority = value === "background" ? "5" : "10";
        this.check();
      }
      this.app.draw();
    };
  }

  get headers() {
    const { draft } = this;
    const life = LIFETIME[draft.expiration];
    const fields = {
      "apns-push-type": draft.type, "apns-priority": draft.priority, "apns-expiration": life === null || life === undefined ? null : life === "0" ? "0" : String(Math.floor(Date.now() / 1000) + life),
      "apns-collapse-id": draft.collapse, "herald-tag": draft.tag,
    };
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value));
  }

  async send() {
    const { app, draft, kind } = this;
    const to = { [kind]: kind === "device" ? this.device : draft[kind].trim(), topic: draft.topic.trim() };
    if (!to[kind] || !to.topic) return app.fail(t("compose.incomplete"));
    const order = { to, environment: draft.environment, headers: this.headers, payload: this.text };
    const post_ = async () => {
      this.isSending = true;
      app.draw();
      this.outcomes = null;
      const answer = await app.act(() => kind === "label" ? this.sendToLabel(order) : post("/v1/send", order));
      this.isSending = false;
      if (answer) {
        this.answer = answer;
        this.line = null;
        sent.unshift({ answer, topic: to.topic, to: kind === "token" ? t("compose.token") : to[kind], text: this.text });
        sent.length = Math.min(sent.length, MOST_SENT);
        app.say(t("compose.answered", { status: answer.status ?? "–" }));
        this.watch(answer);
      }
      app.draw();
    };
    if (draft.environment !== "production" || kind === "device") return post_();
    return app.ask({ title: t("compose.sure"), words: t("compose.sure.words", { topic: to.topic }), deed: t("compose.send"), isHarmless: true, act: post_ });
  }

  /** Sends to the app on each device of a label; the answer stands for all. */
  async sendToLabel({ to: { label, topic }, ...order }) {
    this.outcomes = [];
    const path = `/v1/apps/${encodeURIComponent(topic)}/tokens`;
    let after;
    do {
      const part = await post(withQuery(path, { label, environment: order.environment, limit: PER_ORDER, after }));
      if (part.items.length > 0) {
        const { items } = await post("/v1/send", { ...order, to: part.items.map(({ token }) => ({ token, topic })) });
        this.outcomes.push(...part.items.map(({ device, name }, index) => ({ device, name, answer: items[index] })));
        this.app.draw();
        await new Promise((resolve) => setTimeout(resolve, ORDER_PAUSE));
      }
      after = part.next;
    } while (after && !this.isClosed);
    const bad = this.outcomes.find(({ answer }) => answer.status !== 200);
    return bad?.answer ?? this.outcomes[0]?.answer ?? { status: null, explanation: t("compose.nobody", { topic, label }) };
  }

  async watch(answer) {
    const id = answer.unique_id ?? answer.id;
    if (!id || answer.status !== 200 || this.outcomes) return;
    try {
      const life = await get(withQuery(`/v1/journal/${id}`, { wait: 20, until: "delivered" }));
      if (this.answer === answer) this.line = life.lines.at(-1);
    } catch (error) {
      this.app.notice(error);
    }
    this.app.draw();
  }

  view() {
    return [
      h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.compose"))),
      h("div", { key: "columns", class: "columns even" }, form(() => this.send(), { class: "stack", key: "form" }, this.recipient(), this.content(), this.deeds()), h("div", { class: "stack" }, this.result(), this.looks(), this.history())),
    ];
  }

  recipient() {
    const { app, draft, kind, devices, apps } = this;
    return section(t("compose.to"), { key: "to", actions: segments(t("compose.kind"), kind, [["device", t("col.device")], ["label", t("compose.label")], ["token", t("compose.token")], ["channel", t("compose.channel")]], (one) => {
      this.kind = one;
      app.draw();
    }) },
    h("div", { class: "fields" },
      kind === "device" && field("to-device", t("col.device"), draft.device, this.set("device"), { list: "device-names" }),
      kind === "label" && field("to-label", t("compose.label"), draft.label, this.set("label"), { hint: t("compose.label.hint") }),
      kind === "token" && field("to-token", t("compose.token"), draft.token, this.set("token"), { hint: t("compose.token.hint"), maxlength: 200 }),
      kind === "channel" && field("to-channel", t("channels.id"), draft.channel, this.set("channel")),
      field("to-topic", t("compose.topic"), draft.topic, this.set("topic"), { list: "topic-names" })),
    h("div", { class: "fields small" },
      choice("to-environment", t("col.environment"), draft.environment, [["sandbox", t("env.sandbox")], ...(app.may("admin") ? [["production", t("env.production")]] : [])], this.set("environment")),
      choice("type", t("compose.type"), draft.type, TYPES.map((type) => [type, type]), this.set("type")),
      choice("priority", t("col.priority"), draft.priority, ["10", "5", "1"].map((one) => [one, t(`compose.priority.${one}`)]), this.set("priority")),
      choice("expiration", t("compose.expires"), draft.expiration, ["", "0", "1h", "1d", "30d"].map((one) => [one, t(`compose.expires.${one || "none"}`)]), this.set("expiration")),
      field("collapse", "apns-collapse-id", draft.collapse, this.set("collapse"), { maxlength: 64 }),
      field("tag", t("inbox.tag"), draft.tag, this.set("tag"), { placeholder: "login-test" })),
    h("datalist", { id: "device-names" }, devices.map(({ id, name }) => h("option", { key: id, value: id }, name ?? id))),
    h("datalist", { id: "topic-names" }, apps.map(({ topic, environment }) => h("option", { key: `${topic} ${environment}`, value: topic }, environment ?? ""))));
  }

  content() {
    const { mode, payload, app } = this;
    const isForm = mode === "form" && payload;
    return section(t("one.payload"), { key: "content", actions: segments(t("compose.mode"), isForm ? "form" : "json", [["form", t("compose.form")], ["json", t("json")]], (one) => {
      this.mode = one;
      if (one === "form" && !payload) app.fail(t("compose.notjson"));
      app.draw();
    }) }, isForm ? this.fields(payload) : field("payload", t("compose.json"), this.text, (text) => this.changed(text), { area: true, rows: 14, dir: "ltr", "aria-invalid": payload ? null : "true" }));
  }

  fields(payload) {
    const aps = payload.aps ?? {};
    const alert = typeof aps.alert === "string" ? { body: aps.alert } : aps.alert ?? {};
    const change = (name, isAlert, convert = (value) => value) => (value) => {
      const next = this.payload;
      next.aps ??= {};
      const target = isAlert ? (next.aps.alert = { ...alert }) : next.aps;
      if (value === "" || value === false) delete target[name];
      else target[name] = convert(value);
      if (isAlert && Object.keys(target).length === 0) delete next.aps.alert;
      this.changed(JSON.stringify(next, null, 2));
    };
    return h("div", { class: "stack" },
      field("p-title", t("compose.title"), alert.title, change("title", true)), field("p-subtitle", t("compose.subtitle"), alert.subtitle, change("subtitle", true)),
      field("p-body", t("compose.body"), alert.body, change("body", true), { area: true, rows: 3, kind: "prose" }),
      h("div", { class: "fields pairs" }, field("p-badge", t("compose.badge"), aps.badge?.rawJSON ?? aps.badge, change("badge", false, Number), { type: "number", min: 0 }), field("p-sound", t("compose.sound"), typeof aps.sound === "object" ? aps.sound.name : aps.sound, change("sound")),
        field("p-category", t("compose.category"), aps.category, change("category")), field("p-thread", t("compose.thread"), aps["thread-id"], change("thread-id"))),
      h("div", { class: "ticks" }, tick("p-mutable", "mutable-content", aps["mutable-content"] === 1, change("mutable-content", false, () => 1)), tick("p-available", "content-available", aps["content-available"] === 1, change("content-available", false, () => 1))));
  }

  deeds() {
    const { app, draft } = this;
    return h("div", { key: "deeds", class: "actions" }, h("button", { type: "submit", class: "button main", disabled: this.isSending }, t("compose.send")),
      copyButton(app, "curl", () => curl({ topic: draft.topic }, { headers: { "apns-topic": draft.topic, ...this.headers }, payload: this.text }, app.status), t("one.copy.curl")));
  }

  result() {
    const { answer, line, outcomes } = this;
    if (outcomes?.length > 0) return section(t("one.answer"), { key: "answer" }, table({
      key: "outcomes", caption: t("compose.outcomes"), rows: outcomes, id: ({ device }) => device, columns: [
        { label: t("col.device"), place: "main", cell: ({ device, name }) => link(place("devices", device), null, name ?? device) },
        { label: t("one.answer"), place: "labelled", cell: ({ answer: { status, reason, explanation } }) => [reason ?? (status === null && t("inbox.noanswer")), explanation].filter(Boolean).join(": ") },
      ],
    }));
    if (!answer) return null;
    const isGood = answer.status === 200;
    const id = answer.unique_id ?? answer.id;
    return section(t("one.answer"), { key: "answer" }, note(isGood ? "good" : "bad",
      h("p", null, h("strong", null, [answer.status ?? t("inbox.noanswer"), answer.reason].filter(Boolean).join(" ")), ` ${t("compose.took", { time: duration(answer.took_ms) })}`),
      answer.explanation && h("p", { dir: "auto" }, answer.explanation), line && h("p", null, stateTag(line)), id && h("p", null, link(place("notifications", id), null, t("compose.life")))));
  }

  looks() {
    const { checked, preview } = this;
    return [checked && section(t("inbox.check"), { key: "check" }, checkView(checked)), preview && section(t("inbox.preview"), { key: "preview" }, previewView(preview, this.draft.topic))];
  }

  history() {
    if (sent.length === 0) return null;
    return section(t("compose.sent"), { key: "sent" }, h("p", { class: "quiet" }, t("compose.sent.where")), h("ul", { class: "around" }, sent.map(({ answer, topic, to, text }, index) => h("li", { key: index },
      h("span", { class: "tag", "data-tone": answer.status === 200 ? "good" : "bad" }, answer.status ?? "–"), h("bdi", null, topic), h("span", { class: "quiet", dir: "auto" }, to),
      h("button", { type: "button", class: "button", on: { click: () => {
        this.mode = "json";
        this.changed(text);
      } } }, t("compose.use"))))));
  }
}
