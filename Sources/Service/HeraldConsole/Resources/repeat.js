// Work that is done again and again, while somebody looks and the service answers.

export class Repeat {
  constructor(app, interval, work) {
    Object.assign(this, { app, interval, work });
  }

  /** Does the work after the interval; called again, the interval starts anew. */
  next() {
    if (this.isStopped) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (document.hidden || !this.app.link.up ? this.next() : this.work()), this.interval);
  }

  stop() {
    this.isStopped = true;
    clearTimeout(this.timer);
  }
}
