// The permission request of an app: alerts, badges and sounds.

import { h } from "./dom.js";
import { appIcon } from "./icons.js";

export const KINDS = { alert: "Alerts", badge: "Badges", sound: "Sounds" };

export function question(page, topic) {
  const app = page.device.apps.find((known) => known.topic === topic) ?? { topic, name: topic, wants: Object.keys(KINDS) };
  return h("div", { key: `question ${topic}`, class: "veil" },
    h("div", {
      class: "question", role: "alertdialog", "aria-labelledby": "question-title", "aria-describedby": "question-words",
      tabindex: "-1", made: takeFocus,
    },
    appIcon(app),
    h("h2", { id: "question-title" }, "“", h("bdi", null, app.name), "” would like to send you notifications"),
    h("p", { id: "question-words" }, "Choose what they may do. You can change it later."),
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
      h("input", { type: "checkbox", name: kind, checked: true }), KINDS[kind]))),
    h("div", { class: "answers" },
      h("button", { class: "deed", type: "button", on: { click: () => page.act({ do: "permit", topic, allow: [] }) } }, "Don’t allow"),
      h("button", { class: "deed main", type: "submit" }, "Allow")))));
}

/** The dialog takes the focus only from the phone, not from controls beside it. */
function takeFocus(dialog) {
  const { activeElement } = document;
  if (activeElement === document.body || document.getElementById("screen").contains(activeElement)) dialog.focus();
}
