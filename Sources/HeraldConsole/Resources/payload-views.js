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
    h("p", { class: "actions" },
      h("span", { class: "tag", "data-tone": accepted ? "good" : "bad" }, icon(accepted ? "check" : "close"), h("span", null, accepted ? t("check.accepted") : t("check.refused", { reason: [http2?.status, http2?.reason].filter(Boolean).join(" ") }))),
      size !== undefined && h("span", { class: "quiet" }, t("check.size", { n: number(size), limit: number(limit) })),
      h("span", { class: "quiet" }, t("check.count", { count: findings.length, n: number(findings.length) }))),
    findings.length > 0 && h("ul", { class: "problems" }, findings.map(({ severity, place, message }, index) => h("li", { key: index },
      note(TONES[severity] ?? "waiting", place && h("code", { class: "mono" }, place), h("p", { dir: "auto" }, message))))));
}

/** The notification as a device shows it. States of the device in which it looks the same are told together. */
export function previewView(preview) {
  if (!preview) return null;
  const looks = new Map();
  for (const one of preview.presentations ?? []) {
    const { state, ...look } = one;
    const key = JSON.stringify([look.language, look.shown, look.title, look.subtitle, look.body, look.place, look.badge, look.sound, look.delivered_to_app]);
    if (looks.has(key)) looks.get(key).states.push(state);
    else looks.set(key, { look, states: [state] });
  }
  if (looks.size === 0) return empty(t("preview.none"));
  return h("ul", { key: "preview", class: "previews" }, [...looks].map(([key, { look, states }]) => h("li", { key },
    look.shown ? h("div", { class: "shown-card", lang: look.language ?? "", dir: "auto" }, look.title && h("p", null, h("strong", null, look.title)), look.subtitle && h("p", null, look.subtitle), h("p", null, look.body ?? ""))
      : h("div", { class: "shown-card quiet" }, look.delivered_to_app ? t("preview.app") : t("preview.nothing")),
    h("p", { class: "quiet", dir: "auto" }, [look.language, look.place, typeof look.badge === "number" && t("preview.badge", { badge: look.badge }), look.sound && t("preview.sound", { sound: look.sound })].filter(Boolean).join(" · ")),
    h("p", { class: "quiet" }, t("preview.states", { states: states.join(", ") })))));
}
