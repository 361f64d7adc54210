// Requests to the service.

/** An answer that is not what was asked for, with the service's own words. */
export class Failure extends Error {
  /** `status` is 0 if there was no answer. */
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

/** Keeps a session's secret for this origin, port included: a cookie reaches all ports. */
export const keepSecret = (secret) => localStorage.setItem("herald-session", secret ?? "");

const headers = (accept) => ({ "herald-console": localStorage.getItem("herald-session") ?? "", accept });

/** Asks the service. Returns the answer's JSON, or null without content. */
export async function ask(method, path, body, signal) {
  const hasBody = body !== undefined;
  let answer;
  try {
    answer = await fetch(path, {
      method, signal, credentials: "same-origin", cache: "no-store",
      headers: { ...headers("application/json"), ...(method !== "GET" && { "content-type": "application/json" }) },
      body: hasBody ? JSON.stringify(body) : method === "GET" ? undefined : "{}",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "the service does not answer");
  }
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    if (answer.ok) throw new Failure(answer.status, `${path} is not JSON`);
  }
  if (!answer.ok) throw new Failure(answer.status, value?.error ?? `${method} ${path}: ${answer.status}`);
  return value;
}

export const get = (path, signal) => ask("GET", path, undefined, signal);
export const post = (path, body, signal) => ask("POST", path, body, signal);

/** A path with the members of a query that have a value. */
export function withQuery(path, query) {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  // As RFC 3986 has it: a space is not a plus sign.
  return set.length ? `${path}?${set.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}` : path;
}

/** Opens a stream of events, and calls `hear(kind, data, id)` with each. Returns when it ends. */
export async function listen(path, lastID, hear, signal) {
  const fields = headers("text/event-stream");
  if (lastID) fields["last-event-id"] = lastID;
  const answer = await fetch(path, { headers: fields, signal, credentials: "same-origin", cache: "no-store" });
  if (!answer.ok) {
    const value = await answer.json().catch(() => ({}));
    throw new Failure(answer.status, value.error ?? `GET ${path}: ${answer.status}`);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) tell(block, hear);
  }
}

function tell(block, hear) {
  const fields = { event: "message", data: [] };
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (name === "data") fields.data.push(value);
    else if (name) fields[name] = value;
  }
  // A comment has no data.
  hear(fields.data.length ? fields.event : null, fields.data.length ? JSON.parse(fields.data.join("\n")) : null, fields.id);
}
