// The banner.

import { h } from "./dom.js";
import { card } from "./notification-card.js";

export function banner(page) {
  const { device } = page;
  // A banner in which the user writes does not go away.
  const over = page.reply?.isBanner ? page.reply.id : device.banner;
  const shown = device.notifications.find(({ id }) => id === over);
  if (!shown) return null;
  return h("div", { key: `banner ${shown.id}`, class: "banner", role: "group", "aria-label": `Notification from ${shown.app}` },
    card(page, shown, { isBanner: true }));
}
