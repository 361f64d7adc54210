// Announces news to screen readers. Urgent notifications interrupt.

export class Announcer {
  /** The two live regions are in the page from the start: only later content is read out. */
  constructor(polite, assertive) {
    this.polite = polite;
    this.assertive = assertive;
    this.known = null;
  }

  hear(device) {
    const items = [
      ...device.notifications.map((shown) => ({
        // A notification that was replaced in place has the same identifier and another time.
        key: `${shown.id} ${shown.time} ${shown.title} ${shown.body}`,
        words: [shown.app, shown.title, shown.subtitle, shown.body],
        urgent: shown.interruption === "time-sensitive" || shown.interruption === "critical",
        language: shown.language,
      })),
      ...device.apps.filter(({ received }) => received).map(({ topic, name: app, received }) => ({
        key: `received ${topic} ${received.time}`,
        words: [app, "received a notification while it is open"],
      })),
      ...device.questions.map((topic) => ({
        key: `question ${topic}`,
        words: [name(device, topic), "asks whether it may send you notifications"],
        urgent: true,
      })),
      ...device.sounds.map((sound) => ({
        key: `sound ${sound.id}`,
        words: [`Sound: ${sound.name}`],
      })),
    ];
    const news = this.known ? items.filter(({ key }) => !this.known.has(key)) : [];
    this.known = new Set(items.map(({ key }) => key));
    this.say(this.polite, news.filter(({ urgent }) => !urgent));
    this.say(this.assertive, news.filter(({ urgent }) => urgent));
  }

  say(region, items) {
    if (items.length === 0) return;
    region.replaceChildren(...items.map(({ words, language }) => {
      const line = document.createElement("p");
      if (language) line.lang = language;
      line.textContent = words.filter(Boolean).join(". ");
      return line;
    }));
  }
}

function name(device, topic) {
  return device.apps.find((app) => app.topic === topic)?.name ?? topic;
}
