// The tabs of narrow screens: device, switches, log. With two columns the device is always there.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const TABS = { device: ["device", "Device"], switches: ["switches", "Switches"], log: ["list", "Log"] };

export function tabs(page) {
  return h("nav", { key: "tabs", class: "tabs", "aria-label": "Parts of this page" },
    Object.entries(TABS).map(([name, [drawing, words]]) => h("button", {
      key: name, type: "button", "data-name": name, "aria-current": page.tab === name ? "page" : null,
      on: { click: () => page.show(name) },
    },
    icon(drawing), words,
    name === "device" && page.hasNews && h("span", { key: "news", class: "news" }, h("span", { class: "unseen" }, "new notification")))));
}
