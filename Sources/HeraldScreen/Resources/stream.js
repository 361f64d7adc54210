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
      onDevice(JSON.parse(event.data));
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
