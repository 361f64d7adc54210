// Searches that a person gave a name; this browser alone keeps them.

const KEY = "herald-views";
const MOST = 20;

/** The saved views by name: `{ name, query }`. */
export function savedViews() {
  try {
    const views = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return views.filter(({ name, query }) => typeof name === "string" && typeof query === "object").slice(0, MOST);
  } catch {
    return [];
  }
}

function keep(views) {
  localStorage.setItem(KEY, JSON.stringify(views));
  return views;
}

/** Keeps a view in the place of one with its name; the oldest goes where there are too many. */
export function keepView(name, query) {
  return keep([...without(name), { name, query }].slice(-MOST));
}

export function removeView(name) {
  return keep(without(name));
}

function without(name) {
  return savedViews().filter((one) => one.name !== name);
}
