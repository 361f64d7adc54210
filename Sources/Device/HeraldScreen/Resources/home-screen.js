// The home screen: Live Activities, and the apps with their badges.

import { activities } from "./activity-card.js";
import { h } from "./dom.js";
import { appIcon } from "./icons.js";
import { word } from "./words.js";

export function homeScreen(page) {
  const { device } = page;
  return h("div", { key: "homescreen", class: "home-screen", role: "region", "aria-label": word(device, "home_screen"), tabindex: "0" },
    activities(page),
    device.apps.length === 0 && h("p", { key: "none", class: "none", lang: "en" }, "No app is installed. ", h("code", null, "herald agent install"), " installs one."),
    h("ul", { key: "apps", class: "apps" }, device.apps.map((app) => h("li", { key: app.topic },
      h("button", {
        class: "app", type: "button", "aria-label": spoken(device, app), title: app.topic,
        on: { click: () => page.act({ do: "open", topic: app.topic }) },
      },
      h("span", { class: "icon-place" },
        appIcon(app),
        app.badge > 0 && h("span", { key: "badge", class: "badge" }, app.badge > 99999 ? "99999+" : String(app.badge))),
      h("span", { class: "app-name", dir: "auto", lang: "" }, app.name))))));
}

function spoken(device, app) {
  return app.badge > 0 ? `${app.name}, ${word(device, "badges")}: ${app.badge}` : app.name;
}
