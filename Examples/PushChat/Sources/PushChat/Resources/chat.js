// The app. A push says that there is something new; what it is, the server is asked. So nothing is lost with a push that was
// replaced, closed, cut, or that never came.

import { texts } from "./words.js";

const RETRY_SECONDS = 2;
const element = (id) => document.getElementById(id);

/** What the device told last: its name, its languages, the token. */
let device = null;
/** What this app keeps: `{ udid, token, languages, name, code, isIn }`. */
let mine = null;
/** The newest message that is shown; null before any was asked for. */
let last = null;
let words = texts(navigator.languages);
let retry = null;

// One thing after the other: a message that is fetched twice at a time would be shown twice.
let work = Promise.resolve();

function soon(job) {
  work = work.then(job).then(() => trouble(null), failed);
}

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function failed(error) {
  if (error instanceof Refusal && error.status < 500) return trouble(error.message);
  trouble(words.unreachable);
  clearTimeout(retry);
  retry = setTimeout(() => soon(catchUp), RETRY_SECONDS * 1000);
  return undefined;
}

// The server.

async function ask(path, options) {
  const answer = await fetch(path, options);
  const body = await answer.json();
  if (!answer.ok) throw new Refusal(answer.status, body.error);
  return body;
}

function command(name, members) {
  return ask(`/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ udid: mine.udid, ...members }),
  });
}

/** The user's languages as the server takes them, 20 at most. */
const preferred = () => device.languages.slice(0, 20).join(",");

/** Tells the server what has changed since it was last told. */
async function report() {
  const changes = {};
  if (device.token && device.token !== mine.token) changes.token = device.token;
  if (preferred() !== mine.languages) changes.languages = preferred();
  if (Object.keys(changes).length === 0) return;
  await command("update", changes);
  keep(changes);
}

/** Shows what was said since this app last looked. */
async function catchUp() {
  if (!mine?.isIn) return show(device?.token ? "join" : "waiting");
  try {
    await report();
    let answer;
    do {
      answer = await ask(last === null ? "/api/messages" : `/api/messages?since=${last}`, {
        headers: { authorization: `Bearer ${mine.udid}` },
      });
      last ??= 0;
      for (const message of answer.messages) append(message);
    } while (answer.more);
    element("members").textContent = words.members(answer.members.join(", "));
    show("room");
    if (last > answer.read) await command("update", { read: last });
    window.parent.postMessage({ type: "herald-badge", badge: 0 }, "*");
  } catch (error) {
    if (error.status !== 404) throw error;
    leaveRoom();
    throw new Refusal(404, words.gone);
  }
  return undefined;
}

function leaveRoom() {
  keep({ isIn: false });
  last = null;
  element("messages").replaceChildren();
  show("join");
}

// What the app keeps. Two devices on one laptop are two screens in one browser: each has its own.

function remember() {
  const key = `pushchat ${device.device}`;
  mine = JSON.parse(localStorage.getItem(key) ?? "null");
  if (mine) return;
  const bytes = crypto.getRandomValues(new Uint8Array(20));
  mine = { udid: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""), name: "", code: "", isIn: false };
  keep({});
}

function keep(changes) {
  Object.assign(mine, changes);
  localStorage.setItem(`pushchat ${device.device}`, JSON.stringify(mine));
}

// What is seen.

function show(id) {
  for (const section of ["waiting", "join", "room"]) element(section).hidden = section !== id;
}

function trouble(text) {
  element("trouble").hidden = text === null;
  element("trouble").textContent = text ?? "";
}

function append(message) {
  if (message.id <= last) return;
  last = message.id;
  const line = document.createElement("li");
  if (message.mine) line.className = "mine";
  const author = document.createElement("strong");
  author.textContent = message.author;
  author.dir = "auto";
  const text = document.createElement("p");
  text.textContent = message.text;
  text.dir = "auto";
  const time = document.createElement("time");
  const date = new Date(message.time * 1000);
  time.dateTime = date.toISOString();
  time.textContent = new Intl.DateTimeFormat(words.language, { timeStyle: "short" }).format(date);
  line.append(author, text, time);
  element("messages").append(line);
  element("messages").scrollTop = element("messages").scrollHeight;
}

function speak(languages) {
  words = texts(languages);
  document.documentElement.lang = words.language;
  for (const [id, text] of [
    ["name-words", words.name], ["code-words", words.code], ["join-words", words.join], ["leave", words.leave],
    ["send", words.send], ["waiting-words", words.waiting],
  ]) element(id).textContent = text;
  element("text").setAttribute("aria-label", words.text);
  element("text").placeholder = words.text;
}

// What the user does.

element("join").addEventListener("submit", (event) => {
  event.preventDefault();
  const [name, code] = [element("name").value, element("code").value];
  soon(async () => {
    const [token, languages] = [device.token, preferred()];
    await command("join", { token, languages, name, code });
    keep({ token, languages, name, code, isIn: true });
    last = null;
    element("messages").replaceChildren();
    await catchUp();
  });
});

element("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = element("text").value;
  soon(async () => {
    await command("message", { text });
    if (element("text").value === text) element("text").value = "";
    await catchUp();
  });
});

element("leave").addEventListener("click", () => soon(async () => {
  await command("leave", {});
  leaveRoom();
}));

// What the device says: who it is at first, and something whenever a notification came while the app is open.

window.addEventListener("message", ({ data, source }) => {
  if (source !== window.parent || data?.type !== "herald-app") return;
  const isNew = device?.device !== data.device;
  device = data;
  speak(data.languages);
  if (isNew) {
    remember();
    [element("name").value, element("code").value] = [mine.name, mine.code];
  }
  soon(catchUp);
});

speak(navigator.languages);
if (window.parent === window) {
  element("waiting-words").textContent = words.alone;
  element("forms").hidden = false;
} else {
  window.parent.postMessage({ type: "herald-hello" }, "*");
}
