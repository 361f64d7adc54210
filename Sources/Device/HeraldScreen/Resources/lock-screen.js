// The lock screen: the time, Live Activities, notifications, and a slider.

import { activities } from "./activity-card.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { notificationList } from "./notification-list.js";
import { slider } from "./slider.js";
import { clock, day, languageOf, locale, word } from "./words.js";

export function lockScreen(page) {
  const { device } = page;
  const tag = locale(device);
  // Unlocking leads into the app of the alert that is shown, as on the device.
  const alert = device.notifications.find(({ id }) => id === device.lock_alert);
  return h("div", { key: "lock", class: "lock-screen" },
    h("div", { key: "time", class: "lock-time", lang: tag },
      h("span", { class: "padlock", role: "img", "aria-label": word(device, "locked"), lang: device.words.language }, icon("lock")),
      h("p", { class: "big" }, clock(device, page.now)),
      h("p", { class: "day" }, day(device, page.now))),
    h("div", { key: "list", class: "lock-list", role: "region", "aria-label": word(device, "notifications"), tabindex: "0" },
      activities(page),
      notificationList(page)),
    h("div", { key: "slide", class: "lock-slide" },
      alert
        ? slider({
          key: `view ${alert.id}`, words: alert.slider ?? device.words.view,
          language: languageOf(device, alert.slider ?? device.words.view, alert.language),
          hint: `${alert.app}, ${alert.title ?? alert.body ?? ""}`,
          done: () => page.act({ do: "tap", id: alert.id }),
        })
        : slider({ key: "unlock", words: word(device, "unlock"), language: device.words.language, hint: "", done: () => page.act({ do: "unlock" }) })));
}
