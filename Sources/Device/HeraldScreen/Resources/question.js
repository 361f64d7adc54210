// The permission request of an app: alerts, badges and sounds.

import { h } from "./dom.js";
import { appIcon } from "./icons.js";
import { word } from "./words.js";

/** The parts of a permission with their words on the device. */
const KINDS = { alert: "alerts", badge: "badges", sound: "sounds" };

export function question(page, topic) {
  const { device } = page;
  const [before, after] = device.words.asks_permission.split("{app}");
  const app = device.apps.find((known) => known.topic === topic) ?? { topic, name: topic, wants: Object.keys(KINDS) };
  return h("div", { key: `question ${topic}`, class: "veil" },
    h("div", {
      class: "question", role: "alertdialog", "aria-labelledby": "question-title", "aria-describedby": "question-words",
      tabindex: "-1", made: takeFocus,
    },
    appIcon(app),
    h("h2", { id: "question-title" }, before, h("bdi", { lang: "" }, app.name), after),
    h("p", { id: "question-words" }, word(device, "choose_kinds")),
    h("form", {
      on: {
        submit: (event) => {
          event.preventDefault();
          const allow = app.wants.filter((kind) => event.target.elements[kind]?.checked);
          page.act({ do: "permit", topic, allow });
        },
      },
    },
    h("div", { class: "kinds" }, app.wants.map((kind) => h("label", { key: kind },
      h("input", { type: "checkbox", name: kind, checked: true }), word(device, KINDS[kind])))),
    h("div", { class: "answers" },
      h("button", { class: "deed", type: "button", on: { click: () => page.act({ do: "permit", topic, allow: [] }) } }, word(device, "dont_allow")),
      h("button", { class: "deed main", type: "submit" }, word(device, "allow"))))));
}

/** The dialog takes the focus only from the phone, not from controls beside it. */
function takeFocus(dialog) {
  const { activeElement } = document;
  if (activeElement === document.body || document.getElementById("screen").contains(activeElement)) dialog.focus();
}
