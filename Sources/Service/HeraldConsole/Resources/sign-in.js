// The way in: a link of `herald console`, or a token.

import { h } from "./dom.js";
import { button, field, form, note } from "./ui.js";
import { t } from "./words.js";

let token = "";

export function signIn(app) {
  const send = async () => {
    if (!token.trim()) return;
    try {
      const given = token.trim();
      token = "";
      await app.signIn({ token: given });
      app.signInFailure = null;
    } catch (error) {
      app.signInFailure = error.status === 0 ? t("failure.away") : error.message;
    }
    app.draw();
  };
  return [h("main", { key: "sign-in", id: "main", class: "sign-in", tabindex: "-1", "data-home": "" },
    h("div", { class: "box" },
      h("img", { src: new URL("herald.svg", import.meta.url).pathname, alt: "", width: 40, height: 40 }),
      h("h1", null, t("in.title")),
      h("p", null, t("in.run")),
      h("pre", { class: "code" }, "herald console"),
      app.signInFailure && h("div", { role: "alert" }, note("bad", h("p", { class: "sentence", dir: "auto" }, app.signInFailure))),
      form(send, { class: "stack" },
        field("token", t("in.token"), token, (value) => (token = value), { type: "password", hint: t("in.hint") }),
        h("div", null, h("button", { type: "submit", class: "button main" }, t("in.send")))),
      h("p", { class: "quiet" }, t("in.open"), " ", ["/health", "/metrics", "/openapi.yaml"].map((path, index) => [index ? ", " : "", h("a", { key: path, href: path }, path)]), "."))),
  ];
}
