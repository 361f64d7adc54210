// The stream of events: one for the page, closed while nobody looks, and opened again after an interruption.

import { listen, withQuery } from "./api.js";

const FIRST_WAIT = 1;
const LONGEST_WAIT = 10;
/** A hidden tab gives up its connection after this time: browsers have six for a service. */
const HIDDEN_TIME = 20_000;

export class Live {
  /**
   * `hear(kind, data)` gets each event; `tell(link)` the state of the connection: `{ up: true }`, or
   * `{ up: false, since, retryAt, status, words }` in milliseconds; `isBack()` is called after an interruption.
   */
  constructor(hear, tell, isBack) {
    Object.assign(this, { hear, tell, isBack });
    this.wants = "";
    this.query = "";
    this.lastID = null;
    this.wait = FIRST_WAIT;
    this.lostSince = null;
    document.addEventListener("visibilitychange", () => this.look());
  }

  /** Wants these kinds of events; `query` restricts the lines. */
  want(kinds, query = "") {
    const wants = [...kinds].sort().join(",");
    if (wants === this.wants && query === this.query && this.stream) return;
    this.wants = wants;
    this.query = query;
    this.lastID = null;
    this.open();
  }

  look() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.close(), HIDDEN_TIME);
    else if (!this.stream && this.wants) {
      this.open();
      this.isBack();
    }
  }

  close() {
    clearTimeout(this.retry);
    this.stream?.abort();
    this.stream = null;
  }

  stop() {
    this.close();
    this.wants = "";
  }

  /** Tries now instead of when the time comes. */
  open() {
    this.close();
    const stream = new AbortController();
    this.stream = stream;
    const path = withQuery("/v1/events", { want: this.wants, q: this.query });
    listen(path, this.lastID, (kind, data, id) => this.receive(stream, kind, data, id), stream.signal)
      .then(() => this.lose(stream, {}), (error) => this.lose(stream, error));
  }

  /** The search is wrong, as its own answer says. */
  openWithoutLines() {
    this.query = "";
    this.wants = this.wants.split(",").filter((kind) => kind !== "lines").join(",");
    this.open();
  }

  receive(stream, kind, data, id) {
    if (stream !== this.stream) return;
    if (id) this.lastID = id;
    const wasLost = this.lostSince !== null;
    this.wait = FIRST_WAIT;
    this.lostSince = null;
    if (wasLost) {
      this.tell({ up: true });
      this.isBack();
    }
    if (kind) this.hear(kind, data);
  }

  lose(stream, { status = 0, message }) {
    if (stream !== this.stream || stream.signal.aborted) return;
    this.stream = null;
    if (status === 400 && this.query) return this.openWithoutLines();
    this.lostSince ??= Date.now();
    this.tell({ up: false, since: this.lostSince, retryAt: Date.now() + this.wait * 1000, status, words: status ? message : null });
    if (status === 401) return;
    this.retry = setTimeout(() => this.open(), this.wait * 1000);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}
