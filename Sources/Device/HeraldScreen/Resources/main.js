// The page: the device's snapshot, the page's own state, and rendering.

import { Announcer } from "./announce.js";
import { tellApp } from "./app-frame.js";
import { DisplayLog } from "./display-log.js";
import { h, render } from "./dom.js";
import { failure } from "./failure.js";
import { history } from "./history.js";
import { LogView, stayAtEnd } from "./log.js";
import { lost } from "./lost.js";
import { panel } from "./panel.js";
import { phone } from "./phone.js";
import { Player } from "./sounds.js";
import { send, sendLine, watch } from "./stream.js";
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
  /** Whether the top of the launch image is light or dark; null while it is not known. */
  launchTone: null,
  failure: null,
  tab: "device",
  /** Whether something came while another tab than the device was open. */
  hasNews: false,
  /** The key of the button that has just copied a text. */
  copied: null,
  /** A command line that sends a notification, with `{token}` and `{topic}`; null if the agent knows none. */
  sendLine: null,
  displayLog: new DisplayLog(() => draw()),
  log: new LogView(),

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
    else if (this.failure) this.change(() => (this.failure = null));
  },

  /** Opens a tab. */
  show(tab) {
    this.change(() => {
      this.tab = tab;
      if (tab === "device") this.hasNews = false;
    });
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
    const scroll = stayAtEnd();
    document.body.dataset.tab = page.tab;
    document.body.dataset.link = page.link.up ? "up" : "down";
    document.title = device ? title(device) : "Herald device";
    render(document.getElementById("page"), device ? [
      h("header", { key: "top", class: "top" },
        h("img", { src: "/assets/herald.svg", alt: "", width: 28, height: 28 }),
        h("h1", null, "Herald device"),
        h("span", { class: "name", dir: "auto" }, device.device)),
      h("main", { key: "main" }, tabs(page), panel(page), phone(page), history(page)),
      failure(page),
      lost(page),
    ] : starting());
    scroll();
  });
}

function starting() {
  const words = page.link.up ? "Loading the device…" : "The agent does not answer. Trying again soon.";
  return [h("main", { key: "starting" }, h("p", { class: "starting", role: "status" }, words))];
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
  if (before && page.tab !== "device" && hasNews(before, device)) page.hasNews = true;
  page.displayLog.hear(device.display_log_revision);
  announcer.hear(device);
  tellApp(device);
  player.hear(device.sounds);
  draw();
}

/** Whether a notification came: to the screen, or to the open app. */
function hasNews(before, device) {
  const known = new Set(before.notifications.map(({ id }) => id));
  const received = ({ apps }) => apps.map(({ received: last }) => last?.time ?? "").join();
  return device.notifications.some(({ id }) => !known.has(id)) || (received(device) !== received(before) && device.apps.some(({ received: last }) => last));
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
  page.launchTone = null;
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
watch(hear, (link) => page.change(() => {
  if (link.up && !page.link.up) page.displayLog.forget();
  page.link = link;
}));
sendLine().then((line) => page.change(() => (page.sendLine = line)));
setInterval(draw, 1000);
