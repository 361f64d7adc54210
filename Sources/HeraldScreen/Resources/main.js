// The page: the device's snapshot, the page's own state, and rendering.

import { Announcer } from "./announce.js";
import { tellApp } from "./app-frame.js";
import { h, render } from "./dom.js";
import { failure } from "./failure.js";
import { history } from "./history.js";
import { panel } from "./panel.js";
import { phone } from "./phone.js";
import { Player } from "./sounds.js";
import { send, watch } from "./stream.js";
import { tabs } from "./tabs.js";

const LAUNCH_TIME = 900;
const FAILURE_TIME = 8000;
const RING_TIME = 4000;

/** The state that the views render: the device, and the page's own state. */
const page = {
  device: null,
  /** The time of the snapshot, in the milliseconds of `performance.now()`. */
  heardAt: 0,
  link: { up: true },
  sound: { on: false, ringing: null },
  /** Whether the notification centre is open. */
  isCentreOpen: false,
  /** Unfolded groups and notifications. */
  unfolded: new Set(),
  /** The action whose text is being entered: `{ id, action }`. */
  reply: null,
  /** Apps whose permission request was postponed. */
  later: new Set(),
  /** The app that shows its launch image. */
  launching: null,
  failure: null,
  tab: "device",

  /** The device's time in seconds, which runs between two snapshots. */
  get now() {
    return this.device.time + (performance.now() - this.heardAt) / 1000;
  },

  /** Changes the page's own state. */
  change(body) {
    body(this);
    draw();
  },

  /** Performs an action of the user. */
  async act(action) {
    if (["tap", "open", "home"].includes(action.do)) this.change(() => (this.isCentreOpen = false));
    const problem = await send(action);
    if (problem) this.fail(problem);
  },

  fail(words) {
    const told = { words };
    this.change(() => (this.failure = told));
    setTimeout(() => this.change(() => {
      if (this.failure === told) this.failure = null;
    }), FAILURE_TIME);
  },
};

const player = new Player(
  (sound) => {
    page.change(() => (page.sound.ringing = sound));
    setTimeout(() => page.change(() => {
      if (page.sound.ringing === sound) page.sound.ringing = null;
    }), RING_TIME);
  },
  () => page.change(() => (page.sound.on = player.isOn)),
);
page.turnSound = (on) => (on ? player.turnOn() : player.turnOff());

const announcer = new Announcer(document.getElementById("polite"), document.getElementById("assertive"));

let isDrawing = false;

function draw() {
  if (isDrawing) return;
  isDrawing = true;
  queueMicrotask(() => {
    isDrawing = false;
    const { device } = page;
    document.body.dataset.tab = page.tab;
    document.title = device ? title(device) : "Herald device";
    render(document.getElementById("page"), device ? [
      h("header", { key: "top", class: "top" },
        h("img", { src: "/assets/herald.svg", alt: "", width: 28, height: 28 }),
        h("h1", null, "Herald device"),
        h("span", { class: "name", dir: "auto" }, device.device)),
      h("main", { key: "main" }, panel(page), phone(page), history(page)),
      failure(page),
      tabs(page),
    ] : starting());
  });
}

function starting() {
  const words = page.link.up ? "Loading the device…" : "The agent does not answer. Trying again soon.";
  return [h("p", { class: "starting", role: "status" }, words)];
}

function title(device) {
  const count = device.notifications.length;
  return `${count ? `(${count}) ` : ""}${device.device} – Herald device`;
}

function hear(device) {
  const before = page.device;
  page.device = device;
  page.heardAt = performance.now();
  forget(device);
  if (before && device.foreground && device.foreground !== before.foreground) launch(device.foreground);
  if (before && device.foreground !== before.foreground) page.isCentreOpen = false;
  if (before && device.locked !== before.locked) page.isCentreOpen = false;
  announcer.hear(device);
  tellApp(device);
  player.hear(device.sounds);
  draw();
}

/** Drops state of notifications and apps that are gone. */
function forget(device) {
  if (page.reply && !device.notifications.some(({ id }) => id === page.reply.id)) page.reply = null;
  for (const topic of page.later) if (!device.questions.includes(topic)) page.later.delete(topic);
  for (const id of page.unfolded) {
    if (!device.notifications.some((shown) => id === shown.id || id === `group ${shown.topic} ${shown.thread ?? ""}`)) {
      page.unfolded.delete(id);
    }
  }
}

function launch(topic) {
  page.launching = topic;
  setTimeout(() => page.change(() => (page.launching = null)), LAUNCH_TIME);
}

function escape(event) {
  if (event.key !== "Escape" || event.defaultPrevented || !page.device) return;
  const { device } = page;
  const asked = device.questions.find((topic) => !page.later.has(topic));
  if (page.reply) page.change(() => (page.reply = null));
  else if (asked) page.change(() => page.later.add(asked));
  else if (device.banner && !device.locked) page.act({ do: "close", id: device.banner });
  else if (page.isCentreOpen) page.change(() => (page.isCentreOpen = false));
}

document.addEventListener("keydown", escape);
watch(hear, (link) => page.change(() => (page.link = link)));
setInterval(draw, 1000);
