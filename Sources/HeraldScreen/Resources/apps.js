// The apps, with their actions, permissions and tokens.

import { h } from "./dom.js";
import { appIcon } from "./icons.js";
import { KINDS } from "./question.js";

const PERMISSIONS = { alert: "alerts", badge: "badges", sound: "sounds" };

export function apps(page) {
  const { device } = page;
  return h("section", { key: "apps", class: "box" },
    h("h2", null, "Apps"),
    device.apps.length === 0 && h("p", { key: "none", class: "quiet" }, "No apps."),
    h("ul", { key: "list", class: "app-list" }, device.apps.map((app) => h("li", { key: app.topic }, one(page, app)))));
}

function one(page, app) {
  const isOpen = app.state === "foreground";
  const isWaiting = page.device.questions.includes(app.topic);
  return h("details", null,
    h("summary", null,
      appIcon(app),
      h("span", { class: "app-words" }, h("strong", { dir: "auto" }, app.name), h("span", { class: "quiet" }, standing(app, isWaiting)))),
    h("div", { class: "app-more" },
      h("p", { class: "quiet wrap" }, app.topic, app.environment && ` (${app.environment})`),
      app.refused && h("p", { key: "refused", class: "reason", dir: "auto" }, app.refused),
      h("p", { class: "buttons" },
        h("button", { type: "button", class: "small", on: { click: () => page.act(isOpen ? { do: "home" } : { do: "open", topic: app.topic }) } },
          isOpen ? "Leave" : "Open", h("span", { class: "unseen" }, ` ${app.name}`)),
        h("button", { type: "button", class: "small", on: { click: () => page.act({ do: "end", topic: app.topic }) } },
          "End", h("span", { class: "unseen" }, ` ${app.name}`)),
        isWaiting && h("button", { key: "ask", type: "button", class: "small", on: { click: () => page.change(() => page.later.delete(app.topic)) } },
          "Answer its request")),
      !isWaiting && permissions(page, app),
      token(page, app)));
}

function standing(app, isWaiting) {
  if (app.refused) return "refused by the service";
  return isWaiting ? "waits for permission" : app.state;
}

function permissions(page, app) {
  const allowed = (kind) => app.permission?.[PERMISSIONS[kind]] ?? false;
  const change = (kind, on) => page.act({
    do: "permit", topic: app.topic, allow: Object.keys(KINDS).filter((other) => (other === kind ? on : allowed(other))),
  });
  return h("fieldset", { key: "permissions", class: "kinds" },
    h("legend", null, "Notifications may use"),
    Object.entries(KINDS).map(([kind, words]) => h("label", { key: kind },
      h("input", { type: "checkbox", prop: { checked: allowed(kind) }, on: { change: ({ target }) => change(kind, target.checked) } }),
      words)));
}

function token(page, app) {
  if (!app.token) return h("p", { key: "no-token", class: "quiet" }, "No device token yet.");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(app.token);
    } catch {
      page.fail("the browser does not allow this page to copy: select the token and copy it");
    }
  };
  return h("div", { key: "token", class: "token" },
    h("span", { class: "quiet" }, "Device token"),
    h("code", null, app.token),
    h("button", { type: "button", class: "small", on: { click: copy } }, "Copy", h("span", { class: "unseen" }, ` the token of ${app.name}`)));
}
