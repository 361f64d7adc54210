// The newest entries of the agent's display log, which outlives its restarts.

const STEP = 200;
const MOST = 1000;

export class DisplayLog {
  /** `changed` is called when there are other records. */
  constructor(changed) {
    this.changed = changed;
    /** The records by their identifier, in the order of arrival. */
    this.records = new Map();
    /** The number of records in the agent's log. */
    this.count = 0;
    this.revision = 0;
    this.limit = STEP;
    this.announced = 0;
    this.isReading = false;
  }

  /** Whether the agent has older records that the page can show. */
  get hasOlder() {
    return this.records.size < Math.min(this.count, MOST);
  }

  /** Takes the revision that a snapshot names. */
  hear(revision) {
    this.announced = revision;
    if (revision !== this.revision) this.read();
  }

  /** Reads all again: the agent may have been started anew, and then counts anew. */
  forget() {
    this.revision = 0;
  }

  readOlder() {
    this.limit = Math.min(this.limit + STEP, MOST);
    this.forget();
    this.read();
  }

  async read() {
    if (this.isReading) return;
    this.isReading = true;
    const from = this.revision;
    try {
      const answer = await fetch(`/api/shown?after=${from}&limit=${this.limit}`);
      if (answer.ok) this.take(await answer.json(), from);
    } catch {
      // The next snapshot asks again.
    } finally {
      this.isReading = false;
    }
  }

  take({ revision, count, records }, from) {
    // A record that was read before the log began anew may be of another agent.
    if (from !== this.revision) return this.reread();
    if (from === 0) this.records.clear();
    for (const record of records) this.records.set(identifier(record), record);
    for (const id of this.records.keys()) {
      if (this.records.size <= this.limit) break;
      this.records.delete(id);
    }
    this.revision = revision;
    this.count = count;
    this.changed();
    // An agent that was started anew counts anew: it may not reach the announced revision before its own snapshot comes.
    return this.announced > revision && revision > from ? this.reread() : undefined;
  }

  reread() {
    queueMicrotask(() => this.read());
  }
}

/** A local notification has a name and a due time instead of an `apns-id`. */
function identifier(record) {
  return record.apns_id || `${record.topic} ${record.local} ${record.due}`;
}
