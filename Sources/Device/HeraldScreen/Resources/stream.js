// The stream of snapshots from the agent.

const FIRST_WAIT = 1;
const LONGEST_WAIT = 10;

/**
 * Calls `onDevice` with each snapshot, and `onLink` with the state of the connection to the agent:
 * `{ up: true }`, or `{ up: false, retryAt }` in the milliseconds of `performance.now()`.
 */
export function watch(onDevice, onLink) {
  let wait = FIRST_WAIT;

  function connect() {
    const source = new EventSource("/api/events");
    source.addEventListener("device", (event) => {
      wait = FIRST_WAIT;
      onLink({ up: true });
      onDevice(snapshot(event.data));
    });
    source.addEventListener("error", () => {
      // The browser's own reconnection has no visible time, and stops after a refusal.
      source.close();
      onLink({ up: false, retryAt: performance.now() + wait * 1000 });
      setTimeout(connect, wait * 1000);
      wait = Math.min(wait * 2, LONGEST_WAIT);
    });
  }

  connect();
}

/** A snapshot. In its payloads, a number that JavaScript would change, like `1e400` or `1.10`, is kept as raw JSON to be shown. */
function snapshot(text) {
  const device = JSON.parse(text);
  if (!JSON.rawJSON) return device;
  const exact = JSON.parse(text, (_name, value, { source }) => (typeof value === "number" && JSON.stringify(value) !== source ? JSON.rawJSON(source) : value));
  for (const [index, app] of device.apps.entries()) {
    app.opened_with = exact.apps[index].opened_with;
    if (app.received) app.received.payload = exact.apps[index].received.payload;
    if (app.action) app.action.payload = exact.apps[index].action.payload;
  }
  for (const [index, activity] of device.activities.entries()) {
    const { content, attributes } = exact.activities[index];
    Object.assign(activity, { content, attributes });
  }
  return device;
}

/** Sends an action of the user. Returns null, or an error message. */
export async function send(action) {
  try {
    const answer = await fetch("/api/device", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(action),
    });
    if (answer.ok) return null;
    const failure = await answer.json().catch(() => ({}));
    return failure.error ?? `the agent answered ${answer.status}`;
  } catch {
    return "the agent does not answer";
  }
}

/** A command line that sends the device a notification; null if the agent knows none. */
export async function sendLine() {
  try {
    const answer = await fetch("/api/send");
    return answer.ok ? (await answer.json()).line : null;
  } catch {
    return null;
  }
}
