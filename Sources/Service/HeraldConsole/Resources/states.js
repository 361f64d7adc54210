// The states of notifications: their colour and icon. Their words come from the service.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const TONES = [
  [/^delivered|^sent to/, "good", "check"],
  [/^stored|^answer withheld|^drill/, "waiting", "clock"],
  [/^replaced/, "quiet", "swap"],
  [/^discarded|^refused|^lost/, "bad", "close"],
  [/^received/, "quiet", "arrow"],
];

export function tone(state = "") {
  return TONES.find(([pattern]) => pattern.test(state))?.[1] ?? "quiet";
}

export function stateIcon(state = "") {
  return TONES.find(([pattern]) => pattern.test(state))?.[2] ?? "dot";
}

/** Whether a state is the last of a notification. */
export function isFinal(state = "") {
  return !/^received|^stored|^answer withheld|^drill/.test(state);
}

/** The state with its reason: an icon and words, never colour alone. */
export function stateTag({ state, reason }) {
  return h("span", { class: "tag state", "data-tone": tone(state) }, icon(stateIcon(state)), h("span", null, [state, reason].filter(Boolean).join(" · ")));
}
