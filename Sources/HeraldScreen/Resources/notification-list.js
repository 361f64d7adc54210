// The list of notifications, newest first, grouped by thread.

import { h } from "./dom.js";
import { card, toggle } from "./notification-card.js";

/** The number of notifications that a folded group shows. */
const FOLDED = 1;

export function notificationList(page) {
  const groups = new Map();
  for (const shown of page.device.notifications) {
    const key = `group ${shown.topic} ${shown.thread ?? ""}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(shown);
  }
  return h("ol", { key: "notifications", class: "notifications" }, [...groups].map(([key, members]) => group(page, key, members)));
}

function group(page, key, members) {
  const isOpen = page.unfolded.has(key);
  const rest = members.length - FOLDED;
  return h("li", { key, class: rest > 0 && !isOpen ? "stack folded-stack" : "stack" },
    (isOpen ? members : members.slice(0, FOLDED)).map((shown) => card(page, shown)),
    rest > 0 && h("button", {
      key: "rest", class: "glass rest", type: "button", "aria-expanded": String(isOpen),
      on: { click: () => page.change(() => toggle(page.unfolded, key)) },
    }, isOpen ? "Show less" : `${rest} more from ${members[0].app}`));
}
