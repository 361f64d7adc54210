// Tells, on top of everything, that the page has lost its connection to the agent and shows the past.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { moment } from "./words.js";

export function lost(page) {
  if (page.link.up) return null;
  const seconds = Math.max(1, Math.ceil((page.link.retryAt - performance.now()) / 1000));
  return h("div", { key: "lost", class: "lost", role: "alert" },
    icon("alert"),
    h("p", null,
      h("strong", null, "The agent does not answer."), ` This is what the device showed at ${moment(page.device, page.device.time)}. Trying again`,
      h("span", { "aria-hidden": "true" }, ` in ${seconds} s`), "."));
}
