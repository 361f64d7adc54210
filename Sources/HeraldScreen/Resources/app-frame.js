// What the device and an app's own page tell each other. A page that says nothing is told nothing.

/** The frame of the app that is open, once its page has said hello: `{ page, frame, topic, told }`. */
let open = null;
/** The frame that was made last. */
let made = null;

/** Listens to the page in an app's new frame. */
export function greets(page, frame, topic) {
  made = { page, frame, topic, told: null };
  open = null;
}

function originOf({ frame }) {
  return new URL(frame.src).origin;
}

/** Tells the page of the app that is open what is new for it. */
export function tellApp(device) {
  if (!open?.frame.isConnected) return;
  const app = device.apps.find(({ topic }) => topic === open.topic);
  if (!app) return;
  const news = {
    type: "herald-app", device: device.device, languages: device.languages, topic: app.topic, token: app.token,
    permission: app.permission, opened_with: app.opened_with, received: app.received,
  };
  const words = JSON.stringify(news);
  if (words === open.told) return;
  open.told = words;
  // To nobody but the page that the bundle names: what the frame may show by then besides it hears nothing.
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
  }
});
