// A slider that performs an action at its end: by dragging, by a click, or with Enter or the arrow keys.

import { h } from "./dom.js";

const FAR_ENOUGH = 90;
const KEY_STEP = 25;
const CLICK_DISTANCE = 6;

/** The start positions of sliders that are being dragged. */
const taken = new WeakMap();

export function slider({ key, words, language, hint, done }) {
  const move = (input, value) => {
    input.value = value;
    input.parentElement.style.setProperty("--slid", value / 100);
  };
  const finish = (input) => {
    move(input, 0);
    done();
  };
  return h("div", { key, class: "slider" },
    h("span", { class: "slider-words", lang: language, dir: "auto", "aria-hidden": "true" }, words),
    h("input", {
      type: "range", min: "0", max: "100", step: "any", dir: "ltr",
      "aria-label": hint ? `${words}: ${hint}` : words, "aria-valuetext": words, lang: language,
      made: (input) => move(input, 0),
      on: {
        input: ({ target }) => move(target, target.valueAsNumber),
        pointerdown: ({ target, clientX }) => taken.set(target, clientX),
        pointerup: ({ target, clientX }) => {
          const isClick = Math.abs(clientX - taken.get(target)) < CLICK_DISTANCE;
          if (isClick || target.valueAsNumber >= FAR_ENOUGH) finish(target);
          else move(target, 0);
        },
        pointercancel: ({ target }) => move(target, 0),
        keydown: (event) => {
          const { target } = event;
          const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Enter: 4, " ": 4, End: 4, Home: -4 }[event.key];
          if (steps === undefined) return;
          event.preventDefault();
          const value = Math.min(100, Math.max(0, target.valueAsNumber + steps * KEY_STEP));
          if (value >= FAR_ENOUGH) finish(target);
          else move(target, value);
        },
      },
    }));
}
