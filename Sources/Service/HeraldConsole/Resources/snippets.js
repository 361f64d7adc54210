// Texts to copy: a command that sends a notification again, and the report of a life.

/** A text as one word of a shell. */
function quoted(text) {
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}

/** A `curl` that sends a notification like this one; what the console does not know stays in capitals. */
export function curl(line, caught, status) {
  const headers = { "apns-topic": line.topic, "apns-push-type": line.type ?? "alert", "apns-priority": line.priority ?? 10, ...caught?.headers };
  delete headers["apns-id"];
  delete headers["content-length"];
  const host = status.api_host ?? status.hostname ?? "localhost";
  const port = status.api_port ?? 2197;
  const fields = Object.entries({ ...headers, authorization: "bearer PROVIDER_TOKEN" }).filter(([name]) => /^apns-|^authorization$/.test(name));
  return [
    "curl --http2", ...fields.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    `-d ${quoted(caught?.payload ?? '{"aps":{"alert":"Hello"}}')}`, quoted(`https://${host}:${port}/3/device/DEVICE_TOKEN`),
  ].join(" \\\n  ");
}

/** The life as Markdown, without payload and token. */
export function bugReport(life, status) {
  const [first] = life.lines;
  const cell = (text) => String(text ?? "").replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
  const words = (index) => [life.words?.[index]?.words, life.words?.[index]?.hint].filter(Boolean).join(" – ");
  return [
    `## Notification ${first.id}`, "",
    `- apns-unique-id: ${first.unique_id}`, `- app: ${cell(first.topic)} (${first.environment})`, `- device: ${cell(first.device || "–")}`,
    ...["provider", "type", "priority", "size"].filter((name) => first[name] !== undefined).map((name) => `- ${name}: ${cell(first[name])}`),
    `- Herald ${status.version ?? ""}`, "",
    "| time | state | reason | node | meaning |", "|---|---|---|---|---|",
    ...life.lines.map((line, index) => `| ${line.time} | ${cell(line.state)} | ${cell(line.reason)} | ${cell(line.node)} | ${cell(line.explanation ?? words(index))} |`),
    "", life.final ? "This is its last state." : "More may come.", "",
  ].join("\n");
}
