// Copies texts to the clipboard, and saves them as files.

const KEPT_TIME = 2000;

/** Copies a text. Returns whether the browser did. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard for a page that is neither of this machine nor encrypted.
    return copySelected(text);
  }
}

function copySelected(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  const { activeElement } = document;
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  activeElement?.focus();
  return isDone;
}

/** Lets the browser save a text as a file. */
export function save(name, text, type = "application/x-ndjson") {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_TIME);
}
