// The console: the session, the open page, the stream of events, and drawing.

import { get, keepSecret, post } from "./api.js";
import { h, render } from "./dom.js";
import { setServiceTime } from "./format.js";
import { hearKeys } from "./keys.js";
import { Live } from "./live.js";
import { ENVIRONMENTS, followLinks, kept, route } from "./router.js";
import { frame } from "./shell.js";
import { loading } from "./ui.js";
import { search } from "./search.js";
import { markLanguage, readWords, t } from "./words.js";

const DRAW_INTERVAL = 250;
const SAY_INTERVAL = 5000;
const TOLD_TIME = 8000;
const ROLES = ["viewer", "sender", "admin"];

const app = {
  /** The person and the role; null without a session, undefined before it is known. */
  session: undefined,
  /** The state of the service. */
  status: {},
  /** The newest values of the series. */
  counts: {},
  link: { up: true },
  route: route(),
  /** The open page; null while it is loaded. */
  page: null,
  told: null,
  /** A question to the person: `{ title, words, act, typed }`. */
  question: null,
  isMoreOpen: false,
  isHelpOpen: false,
  copied: null,

  may(role) {
    return Boolean(this.session) && ROLES.indexOf(this.session.role) >= ROLES.indexOf(role) && (role === "viewer" || this.session.mode !== "read-only");
  },

  /** Whether the person starts and stops drills: the service's operator chooses the role. */
  mayDrill() {
    return this.may(this.session?.drills ?? "admin");
  },

  draw() {
    if (isDrawing) return;
    isDrawing = true;
    queueMicrotask(drawNow);
  },

  /** Draws soon: events come faster than anybody reads. */
  drawSoon() {
    soon ??= setTimeout(() => app.draw(), Math.max(0, drawnAt + DRAW_INTERVAL - performance.now()));
  },

  /** The environment that is shown; empty for both. */
  get environment() {
    return ENVIRONMENTS.find((name) => name === this.route.query.environment) ?? "";
  },

  /** Opens an address of the console, with the present environment. */
  go(address, isReplacing = false) {
    this.show(kept(address), isReplacing);
  },

  show(address, isReplacing) {
    if (isReplacing) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    follow();
  },

  /** Changes the query of the open page. */
  setQuery(changes, isReplacing = true) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") query.delete(name);
      else query.set(name, value);
    }
    this.show(query.size ? `${location.pathname}?${query}` : location.pathname, isReplacing);
  },

  /** Tells what was done, or what failed. */
  tell(words, tone = "good") {
    const told = { words, tone };
    this.told = told;
    this.draw();
    setTimeout(() => {
      if (this.told === told) this.told = null;
      this.draw();
    }, TOLD_TIME);
  },

  fail(words) {
    this.tell(words, "bad");
  },

  /** Looks at a failed request: without a session the person signs in again. */
  notice(error) {
    if (error.status === 401) this.leave();
  },

  /** Does something that the person asked for; tells its failure. Returns undefined if it failed. */
  async act(work, done) {
    try {
      const value = await work();
      if (done) this.tell(done);
      return value ?? null;
    } catch (error) {
      this.notice(error);
      this.fail(error.status === 0 ? t("failure.away") : error.message);
      return undefined;
    } finally {
      this.draw();
    }
  },

  async ask(question) {
    this.dialogs ??= await import("./dialogs.js");
    this.question = { ...question, text: "" };
    this.draw();
  },

  async openHelp() {
    [this.dialogs] = await Promise.all([this.dialogs ?? import("./dialogs.js"), readWords(), readStyle()]);
    this.isHelpOpen = true;
    this.draw();
  },

  /** Says something to screen readers, at most every five seconds. */
  say(words) {
    unsaid = words;
    saying ??= setTimeout(() => {
      saying = null;
      saidAt = performance.now();
      document.getElementById("polite").textContent = unsaid;
    }, Math.max(0, saidAt + SAY_INTERVAL - performance.now()));
  },

  search,

  async signIn(body) {
    keepSecret((await post("/v1/session", body)).page_secret);
    await start();
  },

  leave() {
    live.stop();
    this.page?.close?.();
    this.page = null;
    this.session = null;
    this.askToSignIn();
  },

  async askToSignIn() {
    this.signInView ??= (await import("./sign-in.js")).signIn;
    this.draw();
  },

  /** Listens to the events that the open page wants. */
  listen() {
    live.want(new Set(["counts", "problems", "status", ...(this.page?.want ?? [])]), this.page?.linesQuery ?? "");
  },

  tryNow() {
    live.open();
  },

  async readStatus() {
    this.status = await get("/v1/status");
    const now = Date.parse(this.status.now);
    if (now) setServiceTime(now);
    this.draw();
  },
};

let isDrawing = false;
let soon = null;
let drawnAt = -Infinity;
let saying = null;
let saidAt = -Infinity;
let unsaid = "";

function drawNow() {
  isDrawing = false;
  clearTimeout(soon);
  soon = null;
  drawnAt = performance.now();
  const { session, page } = app;
  document.title = [page?.title, "Herald"].filter(Boolean).join(" – ");
  const content = session === undefined ? [h("main", { key: "main", id: "main" }, h("h1", { class: "unseen" }, "Herald"), app.failure ? app.failure : loading())]
    : session === null ? app.signInView?.(app) ?? loading() : frame(app, page ? page.view() : loading());
  render(document.getElementById("page"), content);
}

const live = new Live(
  (kind, data) => {
    if (kind === "counts") app.counts = data;
    if (kind === "status") app.readStatus().catch((error) => app.notice(error));
    app.page?.hear?.(kind, data);
    app.drawSoon();
  },
  (link) => {
    if (link.status === 401) return app.leave();
    app.link = link;
    app.page?.linkChanged?.();
    app.draw();
  },
  () => {
    app.readStatus().catch((error) => app.notice(error));
    app.page?.catchUp?.();
  },
);

let opening = null;

/** Shows the page of the present address. */
async function follow() {
  const before = app.route;
  app.route = route();
  app.isMoreOpen = false;
  if (!app.session) return app.draw();
  if (app.page && before.path === app.route.path) {
    app.page.follow?.(app.route);
    app.listen();
    return app.draw();
  }
  app.page?.close?.();
  app.page = null;
  const turn = {};
  opening = turn;
  app.draw();
  let module;
  try {
    // Now has its words and its style in the first files; those of the others follow it.
    const rest = Promise.all([readWords(), readStyle()]);
    [module] = await Promise.all([import(`./page-${app.route.name}.js`), app.route.name === "now" ? null : rest]);
  } catch {
    // The service was replaced by another version since the page was loaded.
    return location.reload();
  }
  if (opening !== turn) return undefined;
  app.page = new module.default(app, app.route);
  app.listen();
  app.draw();
  scrollTo(0, 0);
  if (before.path !== app.route.path) document.querySelector("[data-home]")?.focus({ preventScroll: true });
  await app.page.start?.();
  return app.draw();
}

let style = null;

/** Reads the style of the pages that open later. */
function readStyle() {
  style ??= new Promise((done, fail) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL("pages.css", import.meta.url).pathname;
    link.onload = done;
    link.onerror = fail;
    document.head.append(link);
  });
  return style;
}

async function start() {
  app.draw();
  try {
    app.session = await get("/v1/session");
  } catch (error) {
    if (error.status === 401 || error.status === 403) app.leave();
    else setTimeout(start, 2000);
    return app.draw();
  }
  app.readStatus().catch((error) => app.notice(error));
  return follow();
}

/** Signs in with a link of `herald console`, whose code no history keeps. */
async function enter() {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return start();
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await app.signIn({ code });
  } catch (error) {
    app.signInFailure = error.message;
    app.leave();
  }
  return undefined;
}

const theme = localStorage.getItem("herald-theme");
if (theme) document.documentElement.dataset.theme = theme;
app.setTheme = (name) => {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem("herald-theme", name);
  app.draw();
};

markLanguage(document.documentElement);
followLinks((address) => app.go(address));
hearKeys(app);
addEventListener("popstate", follow);
// Times like "3 s ago" go on.
setInterval(() => document.hidden || app.drawSoon(), 1000);
enter();
