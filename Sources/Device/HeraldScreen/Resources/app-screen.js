// The open app: its launch image, then its page or the payload that opened it.

import { greets } from "./app-frame.js";
import { h } from "./dom.js";
import { appIcon } from "./icons.js";
import { tone } from "./tone.js";

export function launchScreen(page, app) {
  if (app.launch_picture) {
    const address = `/api/apps/${encodeURIComponent(app.topic)}/images/${encodeURIComponent(app.launch_picture)}`;
    return h("div", { key: "picture", class: "launch-screen", role: "status" },
      h("img", {
        key: "image", class: "launch-picture", src: address, alt: `${app.name}: launch image ${app.launch_picture}`,
        on: { load: ({ target }) => page.change(() => (page.launchTone = tone(target))) },
      }));
  }
  return h("div", { key: "launch", class: "launch-screen", lang: "en", role: "status" },
    appIcon(app),
    h("p", { class: "launch-name", dir: "auto" }, app.name),
    app.launch_image && h("p", { key: "image", class: "launch-image" }, "Launch image: ", h("span", { dir: "auto" }, app.launch_image)));
}

export function appScreen(page, app) {
  const address = pageAddress(app.screen_url);
  return h("div", { key: `app ${app.topic}`, class: "app-screen", role: "region", "aria-label": app.name },
    address
      ? h("iframe", {
        key: "frame", class: "app-frame", src: address, title: app.name,
        sandbox: "allow-forms allow-modals allow-same-origin allow-scripts", referrerpolicy: "no-referrer",
        made: (frame) => greets(page, frame, app.topic),
      })
      : opened(app));
}

/** The screen of an app without its own page. */
function opened(app) {
  return h("div", { key: "opened", class: "opened", lang: "en", tabindex: "0" },
    h("div", { class: "opened-head" }, appIcon(app), h("h2", { dir: "auto" }, app.name), h("p", { class: "quiet" }, app.topic)),
    app.launch_image && h("p", { key: "image" }, "Launch image: ", h("strong", { dir: "auto" }, app.launch_image)),
    app.received && [
      h("h3", { key: "received" }, "Received while open"),
      h("p", { key: "received id", class: "quiet" }, h("code", null, app.received.apns_id ?? app.received.local)),
      app.received.payload === null
        ? h("p", { key: "received words", class: "quiet" }, "Its payload is not a JSON object.")
        : h("pre", { key: "received payload", class: "payload", dir: "ltr" }, JSON.stringify(app.received.payload, null, 2))],
    app.opened_with !== null
      ? [h("h3", { key: "with" }, "Opened with this payload"),
        h("pre", { key: "payload", class: "payload", dir: "ltr" }, JSON.stringify(app.opened_with, null, 2))]
      : h("p", { key: "icon", class: "quiet" }, "Opened by its icon. The app has no page of its own to show here."));
}

/** The address of a page that can be framed, or null. */
function pageAddress(text) {
  if (!text) return null;
  try {
    const address = new URL(text);
    return address.protocol === "http:" || address.protocol === "https:" ? address.href : null;
  } catch {
    return null;
  }
}
