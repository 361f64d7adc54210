// The page's texts, in the device's language.

const TEXTS = {
  en: {
    alone: "PushChat is an app: install PushChat.app on a device of Herald's, and open it there. To play a user without a device:",
    waiting: "The device has no token for PushChat yet. Allow its notifications, and see to it that the device is connected.",
    name: "Nickname", code: "Secret code", join: "Start chatting", leave: "Leave", text: "Message", send: "Send",
    members: (names) => `In the room: ${names}`,
    gone: "You are in no room any more.",
    unreachable: "The server does not answer. It is asked again in a moment.",
  },
  de: {
    alone: "PushChat ist eine App: Installieren Sie PushChat.app auf einem Gerät von Herald und öffnen Sie sie dort. Wer ohne Gerät mitspielen will:",
    waiting: "Das Gerät hat noch kein Token für PushChat. Erlauben Sie die Mitteilungen, und verbinden Sie das Gerät.",
    name: "Spitzname", code: "Geheimwort", join: "Chat beginnen", leave: "Verlassen", text: "Nachricht", send: "Senden",
    members: (names) => `Im Raum: ${names}`,
    gone: "Sie sind in keinem Raum mehr.",
    unreachable: "Der Server antwortet nicht. Er wird gleich wieder gefragt.",
  },
};

/** The texts in the first of the languages that there is, and which one that is. */
export function texts(languages) {
  const language = languages.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in TEXTS) ?? "en";
  return { language, ...TEXTS[language] };
}
