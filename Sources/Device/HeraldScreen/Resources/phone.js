// The phone: its screen, banner and permission requests.

import { activities } from "./activity-card.js";
import { appScreen, launchScreen } from "./app-screen.js";
import { banner } from "./banner.js";
import { h } from "./dom.js";
import { homeScreen } from "./home-screen.js";
import { icon, sign } from "./icons.js";
import { lockScreen } from "./lock-screen.js";
import { notificationList } from "./notification-list.js";
import { question } from "./question.js";
import { clock, direction, locale, word } from "./words.js";

export function phone(page) {
  const { device } = page;
  const asked = device.questions.find((topic) => !page.later.has(topic));
  const tag = locale(device);
  return h("section", { key: "phone", class: "phone", inert: !page.link.up, "aria-label": "The device's screen" },
    h("h2", { class: "unseen" }, "The device's screen"),
    h("div", { class: "screen", id: "screen", "data-home": "", tabindex: "-1", dir: direction(tag), lang: device.words.language, "data-locked": String(device.locked) },
      h("div", { key: "under", class: "under", inert: Boolean(asked), "data-in-app": String(!device.locked && device.foreground !== null), "data-tone": page.launching && page.launchTone },
        statusBar(page, tag),
        ringing(page),
        !device.locked && !page.isCentreOpen && banner(page),
        device.locked ? lockScreen(page) : unlocked(page)),
      asked && question(page, asked)));
}

function unlocked(page) {
  const { device } = page;
  const app = device.apps.find(({ topic }) => topic === device.foreground);
  return [
    h("div", { key: "below", class: "below", inert: page.isCentreOpen },
      !app && homeScreen(page),
      app && (page.launching === app.topic ? launchScreen(page, app) : appScreen(page, app)),
      app && h("button", {
        key: "home", class: "home-bar", type: "button", "aria-label": word(device, "home"), on: { click: () => page.act({ do: "home" }) },
      })),
    page.isCentreOpen && centre(page),
  ];
}

/** The notification centre. */
function centre(page) {
  const { device } = page;
  return h("section", { key: "centre", id: "centre", class: "centre", "aria-label": word(device, "notifications") },
    h("div", { class: "centre-head" },
      h("h2", null, word(device, "notifications")),
      device.notifications.length > 0 && h("button", {
        key: "clear", class: "glass", type: "button", on: { click: () => page.act({ do: "clear" }) },
      }, word(device, "clear_all"))),
    activities(page),
    device.notifications.length === 0 && h("p", { key: "none", class: "none" }, word(device, "no_notifications")),
    notificationList(page));
}

function statusBar(page, tag) {
  const { device } = page;
  const count = device.notifications.length;
  return h("div", { key: "status", class: "status-bar" },
    h("span", { class: "time", lang: tag }, device.locked ? "" : clock(device, page.now)),
    !device.locked && h("button", {
      key: "pill", class: "pill", type: "button", "aria-expanded": String(page.isCentreOpen), "aria-controls": page.isCentreOpen ? "centre" : null,
      "aria-label": `${word(device, "notifications")}: ${count}`,
      on: { click: () => page.change(() => (page.isCentreOpen = !page.isCentreOpen)) },
    }, icon("bell"), h("span", null, String(count))),
    h("span", { class: "signs" },
      device.muted && sign("bellOff", word(device, "muted")),
      device.focus && sign("moon", word(device, "focus")),
      device.saving && sign("leaf", word(device, "saving")),
      device.connection.state === "connected"
        ? sign("signal", word(device, "connected"))
        : sign("signalOff", word(device, "not_connected"))));
}

function ringing(page) {
  const sound = page.sound.ringing;
  if (!sound) return null;
  return h("p", { key: "ringing", class: "strip ringing" },
    icon(page.sound.on ? "note" : "noteOff"),
    h("span", { dir: "auto" }, sound.name === "default" ? word(page.device, "default_sound") : sound.name),
    sound.critical && h("strong", { key: "critical" }, word(page.device, "critical")));
}
