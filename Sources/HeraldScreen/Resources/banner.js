// The banner.

import { h } from "./dom.js";
import { card } from "./notification-card.js";

export function banner(page) {
  const { device } = page;
  const shown = device.notifications.find(({ id }) => id === device.banner);
  if (!shown) return null;
  return h("div", { key: `banner ${shown.id}`, class: "banner", role: "group", "aria-label": `Notification from ${shown.app}` },
    card(page, shown, { isBanner: true }));
}
