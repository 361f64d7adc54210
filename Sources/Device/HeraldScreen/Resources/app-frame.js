// Messages between the device and an app's own page. A page gets messages only after it has sent one.

import { send } from "./stream.js";

/** The frame of the open app, once its page has sent `herald-hello`: `{ page, frame, topic, told }`. */
let open = null;
/** The last frame. */
let made = null;

/** Listens to the page in an app's new frame. */
export function greets(page, frame, topic) {
  made = { page, frame, topic, told: null };
  open = null;
}

function originOf({ frame }) {
  return new URL(frame.src).origin;
}

/** Sends changes to the page of the open app. */
export function tellApp(device) {
  if (!open?.frame.isConnected) return;
  const app = device.apps.find(({ topic }) => topic === open.topic);
  if (!app) return;
  const news = {
    type: "herald-app", device: device.device, languages: device.languages, topic: app.topic, token: app.token,
    permission: app.permission, opened_with: app.opened_with, received: app.received, action: app.action ?? null,
    pending: app.pending,
  };
  const words = JSON.stringify(news);
  if (words === open.told) return;
  open.told = words;
  // Only for the origin that the bundle names: the frame may show another page by now. Raw JSON cannot be posted.
  open.frame.contentWindow.postMessage(JSON.parse(words), originOf(open));
}

/** Asks the agent for the app's page, and tells the page whether that was possible. */
async function ask(app, action) {
  const problem = await send({ ...action, topic: app.topic });
  if (!app.frame.isConnected) return;
  const answer = { type: "herald-answer", do: action.do, notification: action.notification ?? null, error: problem };
  app.frame.contentWindow.postMessage(answer, originOf(app));
}

window.addEventListener("message", ({ data, origin, source }) => {
  if (!made?.frame.isConnected || source !== made.frame.contentWindow || origin !== originOf(made)) return;
  if (data?.type === "herald-hello") {
    open = made;
    open.told = null;
    tellApp(open.page.device);
  } else if (data?.type === "herald-badge" && Number.isSafeInteger(data.badge)) {
    made.page.act({ do: "badge", topic: made.topic, badge: data.badge });
  } else if (data?.type === "herald-categories") {
    ask(made, { do: "categories", categories: data.categories ?? null });
  } else if (data?.type === "herald-schedule") {
    const { notification, payload, after, at, every } = data;
    ask(made, { do: "schedule", notification, payload, after, at, every });
  } else if (data?.type === "herald-cancel") {
    ask(made, { do: "cancel", notification: data.notification });
  }
});
