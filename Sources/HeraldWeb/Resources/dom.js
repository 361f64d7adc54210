// Renders descriptions of elements with the smallest change of the document. Elements that stay keep the focus, their input,
// and their position for screen readers.

const SVG = "http://www.w3.org/2000/svg";
const descriptions = new WeakMap();

/**
 * Describes an element. `attributes` may hold, beside attributes:
 * `key` (identifies the element among its siblings), `on` (listeners by event), `prop` (properties, set when they
 * differ), `vars` (custom properties of its style), `made` (called with a new element).
 * Texts become text nodes, never markup.
 */
export function h(tag, attributes, ...children) {
  return {
    tag,
    attributes: attributes ?? {},
    children: children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  };
}

/** Makes `children` the content of `parent`. */
export function render(parent, children) {
  const active = document.activeElement;
  reconcile(parent, [children].flat(Infinity).filter(Boolean));
  if (active && active !== document.activeElement) restoreFocus(active);
}

function restoreFocus(active) {
  if (active.isConnected) {
    active.focus({ preventScroll: true });
  } else if (document.activeElement === document.body) {
    // The focused element was removed: the focus moves to what the page is about.
    document.querySelector("[data-home]")?.focus({ preventScroll: true });
  }
}

function reconcile(parent, wanted) {
  const { keyed, loose } = present(parent);
  const nodes = wanted.map((child) => {
    if (typeof child !== "object") return text(child, loose);
    const key = child.attributes.key;
    const found = key === undefined ? take(loose, child.tag) : keyed.get(key);
    if (key !== undefined) keyed.delete(key);
    // A description that was used before describes what is there.
    if (found && descriptions.get(found)?.child === child) return found;
    if (found && found.localName === child.tag) return patch(found, child);
    found?.remove();
    return create(child, parent);
  });
  const staying = new Set(nodes);
  for (const node of [...parent.childNodes]) if (!staying.has(node)) node.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else place(parent, node, at);
  }
}

/** Moves a node without reloading frames or losing focus where the browser can. */
function place(parent, node, before) {
  if (parent.moveBefore && node.isConnected && parent.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function present(parent) {
  const keyed = new Map();
  const loose = [];
  for (const node of parent.childNodes) {
    const key = descriptions.get(node)?.key;
    if (key === undefined) loose.push(node);
    else keyed.set(key, node);
  }
  return { keyed, loose };
}

function take(loose, tag) {
  const index = loose.findIndex((node) => node.localName === tag);
  return index < 0 ? undefined : loose.splice(index, 1)[0];
}

function text(value, loose) {
  const index = loose.findIndex((node) => node.nodeType === Node.TEXT_NODE);
  const node = index < 0 ? document.createTextNode("") : loose.splice(index, 1)[0];
  if (node.data !== String(value)) node.data = String(value);
  return node;
}

function create(child, parent) {
  const inSVG = child.tag === "svg" || parent.namespaceURI === SVG;
  const element = inSVG ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  patch(element, child);
  if (child.attributes.made) queueMicrotask(() => child.attributes.made(element));
  return element;
}

function patch(element, child) {
  const before = descriptions.get(element)?.attributes ?? {};
  const { key, on = {}, prop = {}, vars = {}, made, ...attributes } = child.attributes;
  descriptions.set(element, { key, on, attributes, child });
  for (const name of Object.keys(before)) if (!(name in attributes)) element.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value === true ? "" : value)) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const event of Object.keys(on)) listen(element, event);
  reconcile(element, child.children);
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(name, value);
  // Last, because a select takes a value only once it has the option.
  for (const [name, value] of Object.entries(prop)) if (element[name] !== value) element[name] = value;
  return element;
}

const listening = new WeakMap();

function listen(element, event) {
  const events = listening.get(element) ?? new Set();
  if (events.has(event)) return;
  listening.set(element, events.add(event));
  element.addEventListener(event, (happened) => descriptions.get(element)?.on[event]?.(happened));
}
