// A notification card: app, texts and buttons. Texts are never markup.

import { h } from "./dom.js";
import { appIcon, icon } from "./icons.js";
import { ago, languageOf, locale, word } from "./words.js";

/** Texts above these numbers of characters and lines are folded. */
const FOLDED_LENGTH = { body: 220, title: 100 };
const FOLDED_LINES = 4;

const LEVELS = {
  "time-sensitive": ["clock", "time_sensitive"],
  critical: ["alert", "critical"],
  passive: ["bellOff", "passive"],
};

export function card(page, shown, { isBanner = false } = {}) {
  const { device } = page;
  const app = device.apps.find(({ topic }) => topic === shown.topic) ?? { name: shown.app };
  const tag = locale(device);
  return h("article", {
    key: shown.id, class: "card", "data-id": shown.id, "data-level": shown.interruption ?? "active",
    "aria-label": [shown.app, shown.title ?? shown.body].filter(Boolean).join(": "),
  },
  h("button", {
    key: "open", class: "card-open", type: "button", "aria-label": `${device.words.view}: ${shown.app}, ${short(shown.title ?? shown.body ?? "")}`,
    on: { click: () => page.act({ do: "tap", id: shown.id }) },
  }),
  h("div", { key: "head", class: "card-head" },
    appIcon(app, shown.topic),
    h("span", { class: "card-app", dir: "auto", lang: "" }, shown.app),
    shown.replaced && h("span", { key: "replaced", class: "mark" }, word(device, "updated")),
    h("time", { class: "card-time", datetime: new Date(shown.time * 1000).toISOString(), lang: tag }, ago(shown.time, page.now, tag)),
    !isBanner && h("button", {
      key: "close", class: "card-close", type: "button", "aria-label": `${device.words.close}: ${shown.app}, ${short(shown.title ?? shown.body ?? "")}`,
      on: { click: () => page.act({ do: "close", id: shown.id }) },
    }, icon("close"))),
  h("div", { key: "texts", class: "card-texts", lang: shown.language ?? "" }, level(device, shown), texts(page, shown)),
  page.reply?.id === shown.id && reply(page, shown),
  buttons(page, shown, isBanner));
}

function texts(page, shown) {
  const { body, title, subtitle } = shown;
  const isLong = (body ?? "").length > FOLDED_LENGTH.body || (body ?? "").split("\n").length > FOLDED_LINES
    || [title, subtitle].some((text) => (text ?? "").length > FOLDED_LENGTH.title);
  const isFolded = isLong && !page.unfolded.has(shown.id);
  return [
    title && h("h3", { key: "title", class: isFolded ? "card-title folded" : "card-title", dir: "auto" }, title),
    subtitle && h("p", { key: "subtitle", class: isFolded ? "card-subtitle folded" : "card-subtitle", dir: "auto" }, subtitle),
    body && h("p", { key: "body", class: isFolded ? "card-body folded" : "card-body", dir: "auto" }, body),
    isLong && h("button", {
      key: "more", class: "more", type: "button", lang: page.device.words.language, "aria-expanded": String(!isFolded),
      on: { click: () => page.change(() => toggle(page.unfolded, shown.id)) },
    }, word(page.device, isFolded ? "show_all" : "show_less")),
  ];
}

function level(device, shown) {
  const known = LEVELS[shown.interruption];
  return known && h("span", { key: "level", class: "mark level", lang: device.words.language }, icon(known[0]), word(device, known[1]));
}

function buttons(page, shown, isBanner) {
  const [close, view] = isBanner ? shown.buttons : [];
  return [
    shown.actions.length > 0 && h("div", { key: "actions", class: "deeds" }, shown.actions.map((action) => h("button", {
      key: action.identifier, type: "button", lang: shown.language ?? "", dir: "auto",
      class: action.destructive ? "deed destructive" : "deed", on: { click: () => press(page, shown, action, isBanner) },
    }, action.title, action.destructive && h("span", { key: "destructive", class: "unseen", lang: "en" }, " (destructive)")))),
    close && h("div", { key: "buttons", class: "deeds" },
      h("button", {
        key: "close", class: "deed", type: "button", lang: languageOf(page.device, close, shown.language), dir: "auto",
        on: { click: () => page.act({ do: "close", id: shown.id }) },
      }, close),
      view && h("button", {
        key: "view", class: "deed main", type: "button", lang: languageOf(page.device, view, shown.language), dir: "auto",
        on: { click: () => page.act({ do: "tap", id: shown.id }) },
      }, view)),
  ];
}

function press(page, shown, action, isBanner) {
  if (action.text_input) page.change(() => (page.reply = { id: shown.id, action, isBanner }));
  else page.act({ do: "act", id: shown.id, action: action.identifier });
}

/** The text field of an action that needs a text. */
function reply(page, shown) {
  const { action } = page.reply;
  const field = `reply-${shown.id}`;
  return h("form", {
    key: `reply ${action.identifier}`, class: "reply",
    on: {
      submit: (event) => {
        event.preventDefault();
        page.act({ do: "act", id: shown.id, action: action.identifier, text: event.target.elements.text.value });
        page.change(() => (page.reply = null));
      },
    },
  },
  h("label", { for: field, class: "unseen", lang: shown.language ?? "" }, action.title),
  h("input", { id: field, name: "text", type: "text", dir: "auto", autocomplete: "off", maxlength: "4096", made: (input) => input.focus() }),
  h("button", { class: "send", type: "submit" }, word(page.device, "send")));
}

export function toggle(set, value) {
  if (!set.delete(value)) set.add(value);
}

function short(text) {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
