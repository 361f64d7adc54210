// Questions before something that cannot be undone, and the help.

import { h } from "./dom.js";
import { keysAreOn, switchKeys } from "./keys.js";
import { button, field, form, tick } from "./ui.js";
import { t } from "./words.js";

function dialog(key, title, close, ...children) {
  const id = `dialog-${key}`;
  return h("dialog", {
    key, "aria-labelledby": id, made: (element) => {
      if (!element.isConnected) return;
      element.showModal();
      element.querySelector("[data-first]")?.focus();
    },
    on: { cancel: (event) => {
      event.preventDefault();
      close();
    }, click: (event) => event.target === event.currentTarget && close() },
  }, h("div", { class: "dialog" }, h("h2", { id }, title), children));
}

/** The question that the page asks; `typed` is a text that the person has to type. */
export function question(app) {
  const asked = app.question;
  if (!asked) return null;
  const close = () => {
    app.question = null;
    app.draw();
  };
  const isTyped = !asked.typed || asked.text.trim() === asked.typed;
  const send = () => {
    if (!isTyped) return;
    close();
    asked.act();
  };
  return dialog("question", asked.title, close, form(send, { class: "stack" },
    h("p", { dir: "auto" }, asked.words),
    asked.typed && field("typed", t("question.type", { text: asked.typed }), asked.text, (text) => {
      asked.text = text;
      app.draw();
    }),
    h("div", { class: "actions" },
      h("button", { type: "submit", class: `button ${asked.isHarmless ? "main" : "danger"}`, disabled: !isTyped }, asked.deed),
      button(t("cancel"), close))));
}

const KEYS = [["/", "search"], ["g n", "notifications"], ["g d", "devices"], ["g p", "providers"], ["g c", "compose"], ["g r", "refusals"], ["g i", "inbox"], ["g s", "settings"], ["g h", "now"], ["j  k", "rows"], ["Enter", "open"], ["p", "pause"], ["b", "report"], ["Esc", "close"], ["?", "help"]];

export function help(app) {
  if (!app.isHelpOpen) return null;
  const close = () => {
    app.isHelpOpen = false;
    app.draw();
  };
  return dialog("help", t("help.title"), close,
    h("dl", { class: "keys" }, KEYS.map(([key, name]) => h("div", { key }, h("dt", null, h("kbd", null, key)), h("dd", null, t(`help.${name}`))))),
    tick("keys", t("help.on"), keysAreOn(), (isOn) => {
      switchKeys(isOn);
      app.draw();
    }),
    h("div", { class: "actions" }, button(t("close"), close, { kind: "main", "data-first": "" })));
}
