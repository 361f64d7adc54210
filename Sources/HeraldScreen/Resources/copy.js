// Copies a text to the clipboard, and saves one as a file.

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

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard for a page that is neither of this machine nor encrypted.
    return copySelected(text);
  }
}

function copySelected(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  const { activeElement } = document;
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  activeElement?.focus();
  return isDone;
}

/** Lets the browser save a text as a file. */
export function save(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), TOLD_TIME);
}
