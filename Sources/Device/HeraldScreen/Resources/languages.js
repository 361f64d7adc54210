// The user's language, and the whole list of languages in order of preference.

import { h } from "./dom.js";
import { languageName } from "./words.js";

export function languages(page) {
  const { device } = page;
  const list = device.languages;
  const offered = [...new Set([list[0], ...device.available_languages])];
  const choose = (tags) => page.act({ do: "set", languages: tags });
  return [
    h("div", { key: "language", class: "row" },
      h("label", { for: "language" }, "Language"),
      h("select", { id: "language", prop: { value: list[0] }, on: { change: ({ target }) => choose([target.value]) } },
        offered.map((tag) => h("option", { key: tag, value: tag }, languageName(tag))))),
    h("details", { key: "languages", class: "languages" },
      h("summary", null, h("span", null, list.length === 1 ? "More languages" : `${list.length} languages, in order`)),
      h("ol", null, list.map((tag, index) => h("li", { key: tag },
        h("span", { class: "language-name" }, languageName(tag)),
        index > 0 && button("first", "First", `${tag} first`, () => choose([tag, ...list.filter((other) => other !== tag)])),
        list.length > 1 && button("remove", "Remove", tag, () => choose(list.filter((other) => other !== tag)))))),
      add(list, choose)),
  ];
}

function button(key, words, about, press) {
  return h("button", { key, type: "button", class: "small", "aria-label": `${words}: ${about}`, on: { click: press } }, words);
}

function add(list, choose) {
  const submit = (event) => {
    event.preventDefault();
    const field = event.target.elements.tag;
    const tag = field.value.trim();
    field.value = "";
    if (tag) choose([...list.filter((other) => other !== tag), tag]);
  };
  return h("form", { key: "add", class: "join", on: { submit } },
    h("label", { for: "other-language", class: "unseen" }, "Another language"),
    h("input", { id: "other-language", name: "tag", type: "text", size: "8", placeholder: "pt-BR", autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "35" }),
    h("button", { type: "submit", class: "small" }, "Add"));
}
