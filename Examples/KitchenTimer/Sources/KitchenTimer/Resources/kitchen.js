// The page of the app. The app itself is the Swift process behind it, which has the timers and the notifications.

const TEXTS = {
  en: {
    heading: "Kitchen Timer", name: "What for?", minutes: "Minutes", start: "Start", more: "5 more minutes", stop: "Stop",
    dinner: "Dinner is ready", told: (count) => `Told on ${count} device(s).`, over: "Time is up",
    silent: "The app does not run.",
  },
  de: {
    heading: "Küchenwecker", name: "Wofür?", minutes: "Minuten", start: "Start", more: "Noch 5 Minuten", stop: "Stopp",
    dinner: "Das Essen ist fertig", told: (count) => `Auf ${count} Gerät(en) gesagt.`, over: "Die Zeit ist um",
    silent: "Die App läuft nicht.",
  },
};
const element = (id) => document.getElementById(id);
let words = TEXTS.en;
let shown = "";

async function ask(path, body) {
  const answer = await fetch(path, body && {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

function tell(id, text) {
  element(id).hidden = !text;
  element(id).textContent = text ?? "";
}

function speak(languages) {
  const language = languages.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in TEXTS) ?? "en";
  words = TEXTS[language];
  document.documentElement.lang = language;
  for (const [id, text] of [
    ["heading", words.heading], ["name-words", words.name], ["minutes-words", words.minutes], ["start-words", words.start],
    ["dinner", words.dinner],
  ]) element(id).textContent = text;
}

function button(title, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = title;
  made.addEventListener("click", () => act(action));
  return made;
}

function list(timers, now) {
  // Buttons stay where they are while only the time passes.
  const state = JSON.stringify([timers, words.more]);
  if (state !== shown) {
    shown = state;
    element("timers").replaceChildren(...timers.map((timer) => {
      const line = document.createElement("li");
      const name = document.createElement("strong");
      name.textContent = timer.name;
      name.dir = "auto";
      const buttons = document.createElement("div");
      const path = `/api/timers/${encodeURIComponent(timer.id)}`;
      buttons.append(
        button(words.more, () => ask(`${path}/MORE`, {})),
        button(words.stop, () => ask(`${path}/STOP`, {})),
      );
      line.append(name, document.createElement("time"), buttons);
      return line;
    }));
  }
  timers.forEach((timer, index) => {
    const line = element("timers").children[index];
    const left = Math.max(0, Math.ceil(timer.ends - now));
    line.className = left === 0 ? "ringing" : "";
    line.querySelector("time").textContent =
      left === 0 ? words.over : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  });
}

async function show() {
  try {
    const kitchen = await ask("/api/kitchen");
    speak(kitchen.languages);
    list(kitchen.timers, kitchen.now);
    tell("news", kitchen.news);
    tell("trouble", kitchen.trouble);
  } catch {
    tell("trouble", words.silent);
  }
}

async function act(action) {
  try {
    const answer = await action();
    await show();
    if (answer.told !== undefined) tell("news", words.told(answer.told));
  } catch (error) {
    tell("trouble", error.message);
  }
}

element("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const seconds = Math.max(1, Math.round(Number(element("minutes").value) * 60));
  act(() => ask("/api/timers", { name: element("name").value, seconds }));
  element("name").value = "";
});
element("dinner").addEventListener("click", () => act(() => ask("/api/dinner", {})));
setInterval(show, 1000);
show();
