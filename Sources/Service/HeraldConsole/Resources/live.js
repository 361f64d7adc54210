// The stream of events: one for the page, closed while nobody looks, and opened again after an interruption.
// Over HTTP/1.1 a browser has six connections for a service. So the streams of four tabs stay open; each further tab opens
// its own again and again, to take what is new, and leaves the rest of the connections to requests.

import { listen, withQuery } from "./api.js";

const FIRST_WAIT = 1;
const LONGEST_WAIT = 10;
/** A hidden tab gives up its connection after this time. */
const HIDDEN_TIME = 20_000;
/** Streams that stay open, of all tabs together. */
const PLACES = 4;
/** Time between the looks of a tab without a place. */
const LOOK_INTERVAL = 3000;

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
    /** Gives back the place of the stream. */
    this.leavePlace = null;
    /** The last numbers of the events that tell only that something is new. */
    this.numbers = {};
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
    if (document.hidden) {
      this.hiding = setTimeout(() => {
        this.close();
        this.givePlace();
      }, HIDDEN_TIME);
    } else if (!this.stream && this.wants) {
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
    this.givePlace();
    this.wants = "";
  }

  givePlace() {
    this.leavePlace?.();
    this.leavePlace = null;
  }

  /** Takes one of the places, which the browser frees when the tab ends. Returns whether it has one. */
  async takePlace() {
    // A page of an insecure origin has no locks.
    if (this.leavePlace || !navigator.locks) return true;
    for (let number = 0; number < PLACES && !this.leavePlace; number += 1) {
      await new Promise((next) => navigator.locks.request(`herald-stream-${number}`, { ifAvailable: true }, (lock) => {
        next();
        return lock && !this.leavePlace ? new Promise((leave) => (this.leavePlace = leave)) : undefined;
      }));
    }
    return Boolean(this.leavePlace);
  }

  /** Tries now instead of when the time comes. */
  async open() {
    this.close();
    const stream = new AbortController();
    this.stream = stream;
    const stays = await this.takePlace();
    if (!this.stream) this.givePlace();
    if (stream !== this.stream) return;
    if (document.hidden) this.look();
    const path = withQuery("/v1/events", { want: this.wants, q: this.query });
    try {
      await listen(path, this.lastID, (kind, data, id) => this.receive(stream, kind, data, id, stays), stream.signal);
      this.lose(stream, {});
    } catch (error) {
      this.lose(stream, error);
    }
  }

  /** The search is wrong, as its own answer says. */
  openWithoutLines() {
    this.query = "";
    this.wants = this.wants.split(",").filter((kind) => kind !== "lines").join(",");
    this.open();
  }

  receive(stream, kind, data, id, stays) {
    if (stream !== this.stream) return;
    if (id) this.lastID = id;
    const wasLost = this.lostSince !== null;
    this.wait = FIRST_WAIT;
    this.lostSince = null;
    if (wasLost) {
      this.tell({ up: true });
      this.isBack();
    }
    if (kind && this.isNews(kind, data)) this.hear(kind, data);
    // The counts are the last of what there is at the beginning.
    if (stays || kind !== "counts" || stream !== this.stream) return;
    this.close();
    this.retry = setTimeout(() => this.open(), LOOK_INTERVAL);
  }

  /** Each stream begins with the present number of these events. */
  isNews(kind, { version, newest } = {}) {
    if (kind !== "status" && kind !== "caught") return true;
    const [before, number] = [this.numbers[kind], version ?? newest];
    this.numbers[kind] = number;
    return before !== undefined && before !== number;
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
