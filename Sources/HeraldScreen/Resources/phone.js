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
import { clock, direction, locale } from "./words.js";

export function phone(page) {
  const { device } = page;
  const asked = device.questions.find((topic) => !page.later.has(topic));
  const tag = locale(device);
  return h("section", { key: "phone", class: "phone", "aria-label": "The device's screen" },
    h("h2", { class: "unseen" }, "The device's screen"),
    h("div", { class: "screen", id: "screen", tabindex: "-1", dir: direction(tag), "data-locked": String(device.locked) },
      h("div", { key: "under", class: "under", inert: Boolean(asked), "data-in-app": String(!device.locked && device.foreground !== null) },
        statusBar(page, tag),
        lostAgent(page),
        ringing(page),
        !device.locked && banner(page),
        device.locked ? lockScreen(page) : unlocked(page)),
      asked && question(page, asked)));
}

function unlocked(page) {
  const { device } = page;
  const app = device.apps.find(({ topic }) => topic === device.foreground);
  return [
    h("div", { key: "below", class: "below", inert: page.isCentreOpen },
      !app && homeScreen(page),
      app && (page.launching === app.topic ? launchScreen(app) : appScreen(page, app)),
      app && h("button", {
        key: "home", class: "home-bar", type: "button", "aria-label": "Home", on: { click: () => page.act({ do: "home" }) },
      })),
    page.isCentreOpen && centre(page),
  ];
}

/** The notification centre. */
function centre(page) {
  const { device } = page;
  return h("section", { key: "centre", id: "centre", class: "centre", "aria-label": "Notification centre" },
    h("div", { class: "centre-head" },
      h("h2", null, "Notification centre"),
      device.notifications.length > 0 && h("button", {
        key: "clear", class: "glass", type: "button", on: { click: () => page.act({ do: "clear" }) },
      }, "Clear all")),
    activities(page),
    device.notifications.length === 0 && h("p", { key: "none", class: "none" }, "No notifications"),
    notificationList(page));
}

function statusBar(page, tag) {
  const { device } = page;
  const count = device.notifications.length;
  return h("div", { key: "status", class: "status-bar" },
    h("span", { class: "time", lang: tag }, device.locked ? "" : clock(page.now, tag)),
    !device.locked && h("button", {
      key: "pill", class: "pill", type: "button", "aria-expanded": String(page.isCentreOpen), "aria-controls": "centre",
      "aria-label": `Notification centre: ${count === 1 ? "1 notification" : `${count} notifications`}`,
      on: { click: () => page.change(() => (page.isCentreOpen = !page.isCentreOpen)) },
    }, icon("bell"), h("span", null, String(count))),
    h("span", { class: "signs" },
      device.muted && sign("bellOff", "Muted"),
      device.focus && sign("moon", "A Focus is on"),
      device.saving && sign("leaf", "Saving power"),
      device.connection.state === "connected"
        ? sign("signal", "Connected to the service")
        : sign("signalOff", "Not connected to the service")));
}

/** Tells that the page has lost its connection to the agent. */
function lostAgent(page) {
  if (page.link.up) return null;
  const seconds = Math.max(1, Math.ceil((page.link.retryAt - performance.now()) / 1000));
  return h("p", { key: "lost", class: "strip lost", role: "status" },
    icon("alert"), h("span", null, "The agent does not answer. Trying again", h("span", { "aria-hidden": "true" }, ` in ${seconds} s`), "."));
}

function ringing(page) {
  const sound = page.sound.ringing;
  if (!sound) return null;
  return h("p", { key: "ringing", class: "strip ringing" },
    icon(page.sound.on ? "note" : "noteOff"),
    h("span", { dir: "auto" }, sound.name === "default" ? "Default sound" : sound.name),
    sound.critical && h("strong", { key: "critical" }, "critical"));
}
