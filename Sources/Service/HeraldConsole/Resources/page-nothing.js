// An address that no page has.

import { h } from "./dom.js";
import { link } from "./router.js";
import { empty } from "./ui.js";
import { t } from "./words.js";

export default class Nothing {
  get title() {
    return t("place.nothing");
  }

  view() {
    return [h("div", { key: "head", class: "page-head" }, h("h1", null, t("place.nothing"))), empty(t("nothing.words"), link("/", { class: "button" }, t("help.now")))];
  }
}
