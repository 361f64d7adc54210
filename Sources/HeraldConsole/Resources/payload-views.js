// Views of a payload: its check, and what a device shows of it.

import { h } from "./dom.js";
import { number } from "./format.js";
import { icon } from "./icons.js";
import { empty, note } from "./ui.js";
import { t } from "./words.js";

/** The findings of a check, with their place in the JSON. */
export function checkView(check) {
  if (!check) return null;
  const { findings = [], refusal, size } = check;
  return h("div", { key: "check", class: "stack" },
    h("p", { class: "actions" },
      refusal ? h("span", { class: "tag", "data-tone": "bad" }, icon("close"), h("span", null, t("check.refused", { reason: refusal.reason ?? refusal })))
        : h("span", { class: "tag", "data-tone": "good" }, icon("check"), h("span", null, t("check.accepted"))),
      size !== undefined && h("span", { class: "quiet" }, t("check.size", { n: number(size), limit: number(check.limit ?? 4096) })),
      h("span", { class: "quiet" }, t("check.count", { count: findings.length, n: number(findings.length) }))),
    findings.length > 0 && h("ul", { class: "problems" }, findings.map((finding, index) => h("li", { key: index }, note(finding.level === "error" || finding.severity === "error" ? "bad" : "waiting",
      h("p", { dir: "auto" }, (finding.path ?? finding.place) && h("code", { class: "mono" }, finding.path ?? finding.place, " "), finding.message ?? finding.words ?? finding.text ?? ""),
      (finding.advice ?? finding.hint) && h("p", { class: "quiet", dir: "auto" }, finding.advice ?? finding.hint))))));
}

/** The notification as a device shows it, once for each language and state. */
export function previewView(preview) {
  if (!preview) return null;
  const items = preview.items ?? preview.previews ?? [];
  if (items.length === 0) return empty(preview.explanation ?? t("preview.none"));
  return h("ul", { key: "preview", class: "previews" }, items.map((item, index) => h("li", { key: index },
    h("p", { class: "quiet" }, [item.language, item.state, item.place].filter(Boolean).join(" · ")),
    item.title || item.body || item.subtitle ? h("div", { class: "shown-card", lang: item.language ?? "", dir: "auto" },
      item.title && h("p", null, h("strong", null, item.title)), item.subtitle && h("p", null, item.subtitle), item.body && h("p", null, item.body)) : h("p", { dir: "auto" }, item.because?.join(" ") || t("preview.nothing")),
    h("p", { class: "quiet", dir: "auto" }, [item.badge !== undefined && item.badge !== null && t("preview.badge", { badge: typeof item.badge === "object" ? item.badge.after : item.badge }), item.sound && t("preview.sound", { sound: item.sound }), item.buttons?.length && item.buttons.join(" · ")].filter(Boolean).join(" · ")))));
}
