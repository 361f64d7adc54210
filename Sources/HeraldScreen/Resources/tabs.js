// The tabs of narrow screens: device, switches, log.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const TABS = { device: ["device", "Device"], switches: ["switches", "Switches"], log: ["list", "Log"] };

export function tabs(page) {
  return h("nav", { key: "tabs", class: "tabs", "aria-label": "Parts of this page" },
    Object.entries(TABS).map(([name, [drawing, words]]) => h("button", {
      key: name, type: "button", "aria-current": page.tab === name ? "page" : null,
      on: { click: () => page.change(() => (page.tab = name)) },
    }, icon(drawing), words)));
}
