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
    return [h("h1", { key: "title" }, t("place.nothing")), empty("", link("/", { class: "button" }, t("place.now")))];
  }
}
