// What is around every page: the head, the places to go, and what is unusual.

import { post } from "./api.js";
import { h } from "./dom.js";
import { clockTime, duration } from "./format.js";
import { icon } from "./icons.js";
import { address, ENVIRONMENTS, link } from "./router.js";
import { openTyped } from "./search.js";
import { button, iconButton } from "./ui.js";
import { t } from "./words.js";

/** The places of the console, with the least role that has something to do there. */
const PLACES = [
  ["now", "/"], ["notifications", "/notifications"], ["inbox", "/inbox", "sender"], ["compose", "/compose", "sender"], ["devices", "/devices"],
  ["providers", "/providers"], ["refusals", "/refusals"], ["counts", "/counts"], ["channels", "/channels"], ["drills", "/drills"], ["tools", "/tools", "sender"],
  ["settings", "/settings"],
];
/** The page of a list is marked while one of its things is open. */
const PARTS = { notification: "notifications", device: "devices", provider: "providers" };

export function frame(app, content) {
  return [
    h("a", { key: "skip", class: "skip", href: "#main" }, t("skip")),
    h("header", { key: "head", class: "head" }, head(app)),
    h("section", { key: "bars", class: "bars", "aria-label": t("bars") }, unusual(app)),
    h("div", { key: "body", class: "body" },
      h("nav", { key: "rail", class: "rail", "aria-label": t("nav") }, h("ul", null, places(app).map((place) => entry(app, place)))),
      h("main", { key: "main", id: "main", tabindex: "-1", "data-home": "" }, content)),
    bottom(app),
    app.told && h("div", { key: "told", class: "told", "data-tone": app.told.tone, role: app.told.tone === "bad" ? "alert" : "status" },
      icon(app.told.tone === "bad" ? "alert" : "check"), h("p", { class: "sentence", dir: "auto" }, app.told.words),
      iconButton(t("close"), "close", () => {
        app.told = null;
        app.draw();
      })),
    app.question && app.dialogs?.question(app), app.isHelpOpen && app.dialogs?.help(app),
  ];
}

function places(app) {
  return PLACES.filter(([name, , role]) => app.may(role ?? "viewer") && (name !== "inbox" || app.status.catching || app.may("admin")));
}

function entry(app, [name, path]) {
  const isHere = (PARTS[app.route.name] ?? app.route.name) === name;
  return h("li", { key: name }, link(path, { "aria-current": isHere ? "page" : null }, icon(name), h("span", null, t(`place.${name}`))));
}

function bottom(app) {
  const all = places(app);
  const wanted = ["now", "notifications", "inbox", "compose", "devices", "refusals"];
  const first = wanted.map((name) => all.find((place) => place[0] === name)).filter(Boolean).slice(0, 4);
  const rest = all.filter((place) => !first.includes(place));
  const toggle = () => {
    app.isMoreOpen = !app.isMoreOpen;
    app.draw();
  };
  const isHere = rest.some(([name]) => (PARTS[app.route.name] ?? app.route.name) === name);
  return h("nav", { key: "bottom", class: "bottom", "aria-label": t("nav.bottom") },
    app.isMoreOpen && h("ul", { key: "more", id: "more", class: "more-list" }, rest.map((place) => entry(app, place))),
    h("ul", { key: "first", class: "first" }, first.map((place) => entry(app, place)),
      h("li", { key: "more" }, h("button", {
        type: "button", "aria-expanded": String(app.isMoreOpen), "aria-controls": app.isMoreOpen ? "more" : null, "data-here": String(isHere), on: { click: toggle },
      }, icon("more"), h("span", null, t("place.more"))))));
}

function head(app) {
  const { session, status } = app;
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const send = async (event) => {
    event.preventDefault();
    const field = event.target.elements.q;
    const text = field.value.trim();
    field.value = "";
    field.blur();
    if (!(await openTyped(app, text))) app.go(address("/notifications", { q: text }));
  };
  return [
    link("/", { key: "home", class: "brand", "aria-label": t("brand") }, h("img", { src: new URL("herald.svg", import.meta.url).pathname, alt: "", width: 26, height: 26 }), h("span", null, "Herald")),
    h("span", { key: "host", class: "host", dir: "auto" }, status.hostname ?? location.host),
    app.route.name === "notifications" ? h("span", { key: "space", class: "head-search" }) : h("form", { key: "search", class: "head-search", role: "search", on: { submit: send } },
      h("input", { type: "search", name: "q", "aria-label": t("search.label"), placeholder: t("search.place"), autocomplete: "off", spellcheck: "false" })),
    environments(app),
    iconButton(isDark ? t("theme.light") : t("theme.dark"), isDark ? "sun" : "moon", () => app.setTheme(isDark ? "light" : "dark"), { key: "theme" }),
    link("/settings", { key: "who", class: "who" }, h("bdi", null, session.name), h("span", { class: "quiet" }, ` ${t(`role.${session.role}`)}`)),
  ];
}

/** The switch between the environments; not in a service that has one. */
function environments(app) {
  if (!app.environment && !(app.status.environments?.length > 1)) return null;
  return h("select", {
    key: "environment", class: "head-environment", "aria-label": t("col.environment"), prop: { value: app.environment },
    on: { change: ({ target }) => app.setQuery({ environment: target.value }, false) },
  }, ["", ...ENVIRONMENTS].map((name) => h("option", { key: name, value: name }, t(`env.${name || "all"}`))));
}

/** Bars for what is not as always. */
function unusual(app) {
  const { status, link: connection, session } = app;
  const bars = [];
  if (!connection.up) {
    const wait = Math.max(0, Math.ceil((connection.retryAt - Date.now()) / 1000));
    bars.push(bar("away", "bad", "alert", h("span", null, h("span", { role: "alert" }, connection.words ?? t("away", { time: clockTime(connection.since) })), " ",
      h("span", { "aria-hidden": "true" }, t("away.retry", { time: duration(wait * 1000 || 1000) }))), button(t("away.now"), () => app.tryNow())));
  }
  for (const drill of status.drills ?? []) {
    bars.push(bar(`drill ${drill.id}`, "waiting", "drills", h("span", { dir: "auto" }, t("drill.bar", { what: drill.what })),
      app.mayDrill() ? button(t("drill.stop"), () => stopDrill(app, drill), { about: drill.what }) : link("/drills", null, t("drill.see"))));
  }
  // The inbox itself says so too.
  if (status.catching && app.route.name !== "inbox") bars.push(bar("catching", "waiting", "eye", h("span", null, t("catching.bar")), app.may("sender") && link("/inbox", null, t("catching.see"))));
  if (status.clock_moved_seconds) bars.push(bar("clock", "waiting", "clock", h("span", null, t("clock.bar")), app.route.name !== "drills" && link("/drills", null, t("clock.see"))));
  if (session.mode === "read-only") bars.push(bar("read-only", "quiet", "info", h("span", null, t("readonly.bar"))));
  return bars;
}

function bar(key, tone, drawing, ...children) {
  return h("div", { key, class: "bar", "data-tone": tone }, icon(drawing), children);
}

async function stopDrill(app, drill) {
  await app.act(() => post(`/v1/drills/${drill.id}/stop`), t("drill.stopped"));
  await app.readStatus().catch((error) => app.notice(error));
}
