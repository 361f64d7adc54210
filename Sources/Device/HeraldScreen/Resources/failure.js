// The error message.

import { h } from "./dom.js";
import { icon } from "./icons.js";

export function failure(page) {
  return page.failure && h("div", { key: "failure", class: "told", role: "alert" },
    icon("alert"), h("p", { dir: "auto" }, page.failure.words),
    h("button", { type: "button", class: "card-close", "aria-label": "Close this message", on: { click: () => page.change(() => (page.failure = null)) } },
      icon("close")));
}

