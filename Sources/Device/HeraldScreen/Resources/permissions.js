// What the user lets an app do: kinds of notifications, and the style of its alerts.

import { h } from "./dom.js";

const KINDS = { alert: ["alerts", "Alerts"], badge: ["badges", "Badges"], sound: ["sounds", "Sounds"] };
const STYLES = { none: "None", banner: "Banner", alert: "Alert" };

export function permissions(page, app) {
  const allowed = (kind) => app.permission?.[KINDS[kind][0]] ?? false;
  const kinds = Object.keys(KINDS);
  const permit = (allow, more) => page.act({ do: "permit", topic: app.topic, allow: kinds.filter(allow), ...more });
  const change = (kind, on) => permit((other) => (other === kind ? on : allowed(other)));
  const field = `style ${app.topic}`;
  return h("div", { key: "permissions", class: "permissions" },
    h("fieldset", { class: "kinds" },
      h("legend", null, "Notifications may use"),
      kinds.map((kind) => h("label", { key: kind },
        h("input", { type: "checkbox", prop: { checked: allowed(kind) }, on: { change: ({ target }) => change(kind, target.checked) } }),
        KINDS[kind][1]))),
    app.style && h("p", { key: "style", class: "style" },
      h("label", { for: field }, "Alert style"),
      h("select", { id: field, prop: { value: app.style }, on: { change: ({ target }) => permit(allowed, { style: target.value }) } },
        Object.entries(STYLES).map(([style, words]) => h("option", { key: style, value: style }, words)))));
}
