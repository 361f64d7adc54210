// Which page a path shows. Every filter is in the address, so that a link shows the same.

import { h } from "./dom.js";

/** The pages by their path: `[pattern, module]`. */
const ROUTES = [
  [/^\/$/, "now"], [/^\/notifications$/, "notifications"], [/^\/notifications\/(.+)$/, "notification"], [/^\/inbox$/, "inbox"],
  [/^\/compose$/, "compose"], [/^\/devices$/, "devices"], [/^\/devices\/(.+)$/, "device"], [/^\/providers$/, "providers"],
  [/^\/providers\/(.+)$/, "provider"], [/^\/refusals$/, "refusals"], [/^\/channels$/, "channels"], [/^\/drills$/, "drills"],
  [/^\/counts$/, "counts"], [/^\/tools$/, "tools"], [/^\/settings$/, "settings"],
];

export const ENVIRONMENTS = ["production", "sandbox"];

/** An address with the environment of the present one, unless it has its own. */
export function kept(address) {
  const environment = new URLSearchParams(location.search).get("environment");
  if (!environment) return address;
  const url = new URL(address, location.origin);
  if (url.searchParams.has("environment")) return address;
  return `${address.split("#")[0]}${url.search ? "&" : "?"}environment=${encodeURIComponent(environment)}${url.hash}`;
}

export function route(address = location) {
  const path = address.pathname;
  const query = Object.fromEntries(new URLSearchParams(address.search));
  for (const [pattern, name] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return { name, path, query, id: match[1] && decoded(match[1]) };
  }
  return { name: "nothing", path, query };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a page with a query; empty members are left out. */
export function address(path, query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return set.length ? `${path}?${new URLSearchParams(set)}` : path;
}

/** The address of one thing: a notification, a device, a provider. */
export function place(kind, id, query) {
  return address(`/${kind}/${encodeURIComponent(id)}`, query);
}

/** A link within the console. */
export function link(href, attributes, ...children) {
  return h("a", { ...attributes, href: kept(href) }, ...children);
}

/** Follows links within the console without loading the page again. */
export function followLinks(go) {
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest?.("a[href]");
    if (!anchor || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const target = new URL(anchor.href);
    if (target.origin !== location.origin || anchor.target || anchor.download || route(target).name === "nothing") return;
    event.preventDefault();
    if (target.pathname === location.pathname && target.search === location.search && target.hash) {
      document.querySelector(target.hash)?.focus();
    } else go(target.pathname + target.search);
  });
}
