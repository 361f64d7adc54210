// Live Activities.

import { h } from "./dom.js";
import { appIcon } from "./icons.js";
import { clock, word } from "./words.js";

const MOST_FACTS = 12;
const WORDS = { active: "live", stale: "outdated", ended: "ended" };

export function activities(page) {
  const { device } = page;
  if (device.activities.length === 0) return null;
  return h("ol", { key: "activities", class: "activities", "aria-label": word(device, "live_activities") },
    device.activities.map((activity) => h("li", { key: activity.id }, card(page, activity))));
}

function card(page, activity) {
  const { device } = page;
  const app = device.apps.find(({ topic }) => topic === activity.topic) ?? { name: activity.app };
  return h("article", { class: "card activity", "data-state": activity.state, "aria-label": `${word(device, "live_activities")}: ${activity.app}` },
    h("div", { class: "card-head" },
      appIcon(app, activity.topic),
      h("span", { class: "card-app", dir: "auto", lang: "" }, activity.app),
      h("span", { class: "mark state" }, word(device, WORDS[activity.state] ?? "ended"))),
    h("div", { class: "card-texts", lang: "" },
      activity.title && h("h3", { key: "title", class: "card-title", dir: "auto" }, activity.title),
      activity.body && h("p", { key: "body", class: "card-body", dir: "auto" }, activity.body),
      facts(activity),
      dates(page, activity)));
}

/** The content, then the attributes. */
function facts({ content, attributes }) {
  const shown = [...members(content, "content"), ...members(attributes, "attribute")].slice(0, MOST_FACTS);
  return shown.length > 0 && h("dl", { key: "facts", class: "facts" }, shown.map(({ kind, name, value }) => h("div", { key: `${kind} ${name}`, class: kind },
    h("dt", { dir: "auto" }, name),
    h("dd", { dir: "auto" }, typeof value === "string" ? value : JSON.stringify(value)))));
}

function members(dictionary, kind) {
  const entries = dictionary !== null && typeof dictionary === "object" ? Object.entries(dictionary) : [];
  return entries.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => ({ kind, name, value }));
}

function dates(page, activity) {
  const { device } = page;
  const words = [];
  if (activity.stale_date !== null) {
    const name = activity.stale_date > page.now ? "outdated_from" : "outdated_since";
    words.push(word(device, name, { time: clock(device, activity.stale_date) }));
  }
  if (activity.dismissal_date !== null) words.push(word(device, "removed_at", { time: clock(device, activity.dismissal_date) }));
  return words.length > 0 && h("p", { key: "dates", class: "quiet", lang: device.words.language }, words.join(", "));
}
