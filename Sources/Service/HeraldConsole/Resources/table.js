// Tables; on narrow screens each row is a card of two lines.

import { h } from "./dom.js";
import { button } from "./ui.js";
import { t } from "./words.js";

/**
 * A table. A column is `{ label, cell(row), place }`; its place in a card is `main`, `side`, `more` or `no` (left out). A cell
 * that `isName` stays on one line. A column in which no row has anything is left out.
 * The explicit roles stay when a style turns rows into cards.
 */
export function table({ key = "table", caption, columns: all, rows, id, after, rowAttributes = () => ({}) }) {
  const cells = new Map(rows.map((row) => [row, all.map(({ cell }) => cell(row))]));
  const columns = all.map((column, at) => ({ ...column, at })).filter(({ at }) => rows.some((row) => !isNothing(cells.get(row)[at])));
  return h("table", { key, class: "table", role: "table" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map(({ label, isNumber, place }) =>
      h("th", { key: label, role: "columnheader", scope: "col", class: isNumber ? "number" : null, "data-wide": place === "wide" }, label)))),
    h("tbody", { role: "rowgroup" }, rows.flatMap((row) => [
      h("tr", { key: id(row), role: "row", ...rowAttributes(row) }, columns.map(({ label, at, place = "more", isNumber, isCode, isName }) => {
        const content = cells.get(row)[at];
        return h("td", {
          key: label, role: "cell", "data-label": label, "data-place": isNothing(content) ? "no" : place, "data-wide": place === "wide",
          class: [isNumber && "number", isCode && "mono", isName && "name"].filter(Boolean).join(" ") || null, dir: "auto",
        }, content);
      })),
      after?.(row) && h("tr", { key: `after ${id(row)}`, role: "row", class: "after" }, h("td", { role: "cell", colspan: columns.length }, after(row))),
    ].filter(Boolean))));
}

function isNothing(content) {
  return content === null || content === undefined || content === "" || content === false;
}

/** A list that comes in pages: keeps its rows, and reads on from the last one. */
export class Pages {
  /** `read(after)` returns `{ items, next }`. */
  constructor(app, read) {
    Object.assign(this, { app, read, items: null, next: null, failure: null, isReading: false });
  }

  async start() {
    this.next = null;
    await this.more(true);
  }

  async more(isNew = false) {
    if (this.isReading && !isNew) return;
    const turn = {};
    this.turn = turn;
    this.isReading = true;
    this.app.draw();
    try {
      const answer = await this.read(isNew ? null : this.next);
      if (this.turn !== turn) return;
      const { items, next } = Array.isArray(answer) ? { items: answer, next: null } : answer;
      this.items = isNew ? items : [...this.items, ...items];
      this.next = next ?? null;
      this.failure = null;
    } catch (error) {
      if (this.turn !== turn || error.name === "AbortError") return;
      this.failure = error;
      this.app.notice(error);
    }
    this.isReading = false;
    this.app.draw();
  }

  moreButton() {
    return this.next && h("div", { key: "more", class: "more" }, button(t("list.more"), () => this.more(), { disabled: this.isReading }));
  }
}

/** Moves the focus among the rows of the page; the rows' own links have it. */
export function moveRow(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement.closest?.("[data-row]") ?? document.activeElement);
  const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
