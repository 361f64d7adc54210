// The apps, with their actions, permissions, pending notifications and tokens.

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { appIcon } from "./icons.js";
import { pending } from "./pending.js";
import { permissions } from "./permissions.js";

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
  return [
    h("details", { key: "app" },
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
        pending(page, app),
        token(page, app))),
    app.token && h("p", { key: "copy", class: "app-copy" },
      copyButton(page, `token ${app.topic}`, app.token, "Copy token", `of ${app.name}`),
      page.sendLine && copyButton(page, `line ${app.topic}`, line(page, app), "Copy curl", `line for ${app.name}`)),
  ];
}

function standing(app, isWaiting) {
  if (app.refused) return "refused by the service";
  return isWaiting ? "waits for permission" : app.state;
}

function token(page, app) {
  if (!app.token) return h("p", { key: "no-token", class: "quiet" }, "No device token yet.");
  return h("div", { key: "token", class: "token" },
    h("span", { class: "quiet" }, "Device token"),
    h("code", null, app.token),
    page.sendLine && [
      h("span", { key: "send", class: "quiet" }, "To send it a notification"),
      h("code", { key: "line" }, line(page, app)),
    ]);
}

/** The command line that sends the app a notification. */
function line({ sendLine }, app) {
  return sendLine.replaceAll("{token}", app.token).replaceAll("{topic}", app.topic);
}
