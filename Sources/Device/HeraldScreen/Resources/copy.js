// A button that copies a text.

import { copy } from "./clipboard.js";
import { h } from "./dom.js";

const TOLD_TIME = 2000;

/** A button that copies a text and says so. `key` tells the buttons of the page apart. */
export function copyButton(page, key, text, words, about = "") {
  const press = async () => {
    if (!(await copy(text))) return page.fail("the browser does not allow this page to copy: select the text and copy it");
    page.change(() => (page.copied = key));
    setTimeout(() => page.change(() => {
      if (page.copied === key) page.copied = null;
    }), TOLD_TIME);
  };
  return h("button", { key, type: "button", class: "small", on: { click: press } },
    page.copied === key ? "Copied" : words, about && h("span", { class: "unseen" }, ` ${about}`));
}
