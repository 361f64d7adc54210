// The local notifications that an app has scheduled.

import { h } from "./dom.js";
import { instant } from "./words.js";

export function pending(page, app) {
  const scheduled = app.pending ?? [];
  if (scheduled.length === 0) return null;
  const cancel = (notification) => page.act({ do: "cancel", topic: app.topic, notification });
  return h("div", { key: "pending", class: "pending" },
    h("h3", null, "Pending notifications"),
    h("ol", null, scheduled.map(({ id, next, title, body, every }) => h("li", { key: id },
      h("span", { class: "pending-words" },
        h("span", { dir: "auto" }, [title, body].filter(Boolean).join(": ") || id),
        h("span", { class: "quiet" }, next && instant(page.device, next), every && `, every ${every}`)),
      h("button", { type: "button", class: "small", on: { click: () => cancel(id) } },
        "Cancel", h("span", { class: "unseen" }, ` ${id}`))))));
}
