// The lock screen: the time, Live Activities, notifications, and a slider.

import { activities } from "./activity-card.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { notificationList } from "./notification-list.js";
import { slider } from "./slider.js";
import { clock, day, locale } from "./words.js";

export function lockScreen(page) {
  const { device } = page;
  const tag = locale(device);
  const newest = device.notifications.find((shown) => shown.slider !== null && shown.place !== "list");
  return h("div", { key: "lock", class: "lock-screen" },
    h("div", { key: "time", class: "lock-time", lang: tag },
      h("span", { class: "padlock", role: "img", "aria-label": "Locked", lang: "en" }, icon("lock")),
      h("p", { class: "big" }, clock(page.now, tag)),
      h("p", { class: "day" }, day(page.now, tag))),
    h("div", { key: "list", class: "lock-list", role: "region", "aria-label": "Notifications on the locked screen", tabindex: "0" },
      activities(page),
      notificationList(page)),
    h("div", { key: "slide", class: "lock-slide" },
      newest
        ? slider({
          key: `view ${newest.id}`, words: newest.slider, language: newest.language,
          hint: `${newest.app}, ${newest.title ?? newest.body ?? ""}`,
          done: () => page.act({ do: "tap", id: newest.id }),
        })
        : slider({ key: "unlock", words: "slide to unlock", hint: "", done: () => page.act({ do: "unlock" }) }),
      newest && h("button", {
        key: "unlock", class: "plain", type: "button", on: { click: () => page.act({ do: "unlock" }) },
      }, "Unlock")));
}
