// Messages between the device and an app's own page. A page gets messages only after it has sent one.

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
    permission: app.permission, opened_with: app.opened_with, received: app.received,
    action: app.action ?? null,
  };
  const words = JSON.stringify(news);
  if (words === open.told) return;
  open.told = words;
  // Only for the origin that the bundle names: the frame may show another page by now.
  open.frame.contentWindow.postMessage(news, originOf(open));
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
    made.page.act({ do: "categories", topic: made.topic, categories: data.categories ?? null });
  }
});
