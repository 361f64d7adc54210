// The parts that pages are made of.

import { copy } from "./clipboard.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

const TOLD_TIME = 2000;

/** A button. `about` is read out after its words, where several have the same. */
export function button(words, press, { icon: drawing, kind = "", about, ...attributes } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, ...attributes, on: { click: press } },
    drawing && icon(drawing), h("span", null, words), about && h("span", { class: "unseen" }, ` ${about}`));
}

/** A button with an icon alone. */
export function iconButton(words, drawing, press, attributes = {}) {
  return h("button", { type: "button", class: "button bare", "aria-label": words, title: words, ...attributes, on: { click: press } }, icon(drawing));
}

/** A button that copies a text and says so. */
export function copyButton(app, key, text, words, about) {
  const press = async () => copyAs(app, key, typeof text === "function" ? await text() : text);
  return button(app.copied === key ? t("copy.done") : words, press, { key, icon: app.copied === key ? "check" : "copy", about });
}

/** Copies a text, and says so at the button with this key. */
export async function copyAs(app, key, text) {
  if (!(await copy(text))) return app.fail(t("copy.failed"));
  app.copied = key;
  app.say(t("copy.done"));
  app.draw();
  setTimeout(() => {
    if (app.copied === key) app.copied = null;
    app.draw();
  }, TOLD_TIME);
  return undefined;
}

/** A part of the page with a title. */
export function section(title, { key = title, actions, kind = "" } = {}, ...children) {
  const id = `title-${key}`.replaceAll(/[^\w-]/g, "-");
  return h("section", { key, class: `box ${kind}`, "aria-labelledby": id },
    h("div", { class: "box-head" }, h("h2", { id }, title), actions && h("div", { class: "actions" }, actions)), children);
}

/** Names with their values; those without a value are left out. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
    .map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", { dir: "auto" }, value))));
}

/** A name with dots, as of an app: a narrow column breaks it after a dot. */
export function dotted(name) {
  return String(name ?? "").split(/(?<=\.)/).flatMap((part, index) => (index ? [h("wbr"), part] : [part]));
}

/** A note in a colour, with an icon that says the same. */
export function note(tone, ...children) {
  const drawing = { bad: "alert", waiting: "alert", good: "check" }[tone] ?? "info";
  return h("div", { class: "note", "data-tone": tone }, icon(drawing), h("div", { class: "note-words" }, children));
}

export function failureNote(failure, retry) {
  return h("div", { key: "failure", role: "alert" }, note("bad", h("p", { class: "sentence", dir: "auto" }, failure.status === 0 ? t("failure.away") : failure.message), retry && button(t("failure.retry"), retry)));
}

export function empty(words, ...more) {
  return h("div", { key: "empty", class: "empty" }, h("p", null, words), more);
}

export function loading() {
  return h("p", { key: "loading", class: "loading quiet" }, t("loading"));
}

let fields = 0;
const ids = new Map();

/** An identifier for a control, the same at each drawing. */
function idOf(name) {
  if (!ids.has(name)) ids.set(name, `field-${fields++}`);
  return ids.get(name);
}

/** A labelled input: `name` tells it from others of the page. */
export function field(name, label, value, change, { hint, area = false, kind = "", ...attributes } = {}) {
  const id = idOf(name);
  return h("div", { key: name, class: `field ${kind}` },
    h("label", { for: id }, label),
    h(area ? "textarea" : "input", {
      id, autocomplete: "off", spellcheck: "false", dir: "auto", ...attributes, "aria-describedby": hint ? `${id}-hint` : null, prop: { value: value ?? "" },
      on: { input: ({ target }) => change(target.value) },
    }),
    hint && h("p", { id: `${id}-hint`, class: "hint" }, hint));
}

/** A labelled choice from `[value, words]`. */
export function choice(name, label, value, options, change, { kind = "" } = {}) {
  const id = idOf(name);
  return h("div", { key: name, class: `field ${kind}` },
    h("label", { for: id }, label),
    h("select", { id, prop: { value: value ?? "" }, on: { change: ({ target }) => change(target.value) } },
      options.map(([option, words]) => h("option", { key: option, value: option }, words))));
}

/** A box to tick. */
export function tick(name, label, isOn, change) {
  const id = idOf(name);
  return h("div", { key: name, class: "tick" },
    h("input", { id, type: "checkbox", prop: { checked: Boolean(isOn) }, on: { change: ({ target }) => change(target.checked) } }),
    h("label", { for: id }, label));
}

/** Buttons of which one is chosen. */
export function segments(label, value, options, change) {
  return h("div", { key: label, class: "segments", role: "group", "aria-label": label }, options.map(([option, words]) => h("button", {
    key: option, type: "button", "aria-pressed": String(option === value), on: { click: () => change(option) },
  }, words)));
}

/** A form: Enter in a field sends it. */
export function form(send, attributes, ...children) {
  return h("form", { ...attributes, on: { submit: (event) => {
    event.preventDefault();
    send();
  } } }, children);
}

/** A text to read or to copy, as it is. */
export function code(text, label) {
  return h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": label, dir: "ltr" }, text);
}
