// The list of notifications, grouped by thread; the most urgent first, then the newest.

import { h } from "./dom.js";
import { card, toggle } from "./notification-card.js";
import { word } from "./words.js";

/** The number of notifications that a folded group shows. */
const FOLDED = 1;

/** A folded group must not hide what is urgent below what is not. */
const RANKS = { critical: 0, "time-sensitive": 1, active: 2, passive: 3 };
const rank = ({ interruption }) => RANKS[interruption] ?? RANKS.active;

export function notificationList(page) {
  const groups = new Map();
  for (const shown of page.device.notifications) {
    const key = `group ${shown.topic} ${shown.thread ?? ""}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(shown);
  }
  return h("ol", { key: "notifications", class: "notifications" }, [...groups].map(([key, members]) => group(page, key, members.toSorted((one, other) => rank(one) - rank(other)))));
}

function group(page, key, members) {
  const isOpen = page.unfolded.has(key);
  const rest = members.length - FOLDED;
  return h("li", { key, class: rest > 0 && !isOpen ? "stack folded-stack" : "stack" },
    (isOpen ? members : members.slice(0, FOLDED)).map((shown) => card(page, shown)),
    rest > 0 && h("button", {
      key: "rest", class: "glass rest", type: "button", "aria-expanded": String(isOpen),
      on: { click: () => page.change(() => toggle(page.unfolded, key)) },
    }, isOpen ? word(page.device, "show_less") : word(page.device, "more_from", { count: rest, app: members[0].app })));
}
