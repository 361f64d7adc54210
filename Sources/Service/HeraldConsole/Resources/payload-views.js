// Views of a payload: its check, and what a device shows of it.

import { h } from "./dom.js";
import { number } from "./format.js";
import { icon } from "./icons.js";
import { empty, note } from "./ui.js";
import { t } from "./words.js";

const TONES = { error: "bad", warning: "waiting", note: "quiet" };

/** The body of a request to check a payload or to preview it, in the reader's languages. */
export function question(payload, pushType) {
  return { payload, push_type: pushType || undefined, languages: [...new Set(navigator.languages)].slice(0, 3) };
}

/** The findings of a check, with their place in the JSON. */
export function checkView(check) {
  if (!check) return null;
  const { findings = [], accepted, http2, size, limit } = check;
  return h("div", { key: "check", class: "stack" },
    h("p", { class: "health" },
      h("span", { class: "tag", "data-tone": accepted ? "good" : "bad" }, icon(accepted ? "check" : "close"), h("span", null, accepted ? t("check.accepted") : t("check.refused", { reason: [http2?.status, http2?.reason].filter(Boolean).join(" ") }))),
      size !== undefined && h("span", { class: "quiet" }, t("check.size", { n: number(size), limit: number(limit) })),
      h("span", { class: "quiet" }, findings.length ? t("check.count", { count: findings.length, n: number(findings.length) }) : t("check.none"))),
    findings.length > 0 && h("ul", { class: "problems" }, findings.map(({ severity, place, message }, index) => h("li", { key: index },
      note(TONES[severity] ?? "waiting", place && h("code", { class: "mono" }, place), h("p", { dir: "auto" }, message))))));
}

/** The notification as a device shows it: each text once, with the states of the device in which it appears. */
export function previewView(preview, topic = "") {
  if (!preview) return null;
  const looks = new Map();
  for (const one of preview.presentations ?? []) {
    const key = one.shown ? JSON.stringify([one.title, one.subtitle, one.body]) : "";
    if (!looks.has(key)) looks.set(key, { one, languages: new Set(), places: new Map() });
    const { languages, places } = looks.get(key);
    const name = one.shown ? one.place ?? "" : t(one.delivered_to_app ? "preview.app" : "preview.nothing");
    const words = [name, typeof one.badge === "number" && t("preview.badge", { badge: one.badge }), one.shown && one.sound && t("preview.sound", { sound: one.sound })].filter(Boolean).join(" · ");
    if (!places.has(words)) places.set(words, new Set());
    places.get(words).add(one.state);
    languages.add(one.language);
  }
  if (looks.size === 0) return empty(t("preview.none"));
  const app = topic.split(".").at(-1);
  return h("ul", { key: "preview", class: "previews" }, [...looks].map(([key, { one, languages, places }]) => h("li", { key },
    key && h("div", { class: "shown-card" }, h("span", { class: "shown-app", "aria-hidden": "true" }, (app[0] ?? "•").toUpperCase()),
      h("div", { lang: one.language ?? "", dir: "auto" }, one.title && h("p", null, h("strong", null, one.title)), one.subtitle && h("p", null, one.subtitle), h("p", null, one.body ?? ""))),
    key && looks.size > 2 && h("p", { class: "quiet" }, t("preview.languages", { list: [...languages].filter(Boolean).join(", ") })),
    h("dl", { class: "shown-where" }, [...places].map(([words, states]) => h("div", { key: words }, h("dt", { class: "sentence", dir: "auto" }, words), h("dd", { class: "quiet", dir: "auto" }, [...states].join(", "))))))));
}
