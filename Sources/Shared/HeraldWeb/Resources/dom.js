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
  // Most drawings change texts and attributes alone: children that stay in order are not searched for.
  let at = parent.firstChild;
  let count = 0;
  for (; at && count < wanted.length && isOf(at, wanted[count]); count += 1) at = update(at, wanted[count]).nextSibling;
  const rest = wanted.slice(count);
  if (at) rearrange(parent, at, rest);
  else for (const child of rest) parent.append(make(child, parent));
}

/** Makes `wanted` the content of `parent` from the node `first` on. */
function rearrange(parent, first, wanted) {
  const before = first.previousSibling;
  const present = { nodes: [], keyed: new Map(), loose: [] };
  for (let node = first; node; node = node.nextSibling) {
    const key = descriptions.get(node)?.key;
    present.nodes.push(node);
    if (key === undefined) present.loose.push(node);
    else present.keyed.set(key, node);
  }
  const nodes = wanted.map((child) => {
    const found = take(present, child);
    return found ? update(found, child) : make(child, parent);
  });
  const staying = new Set(nodes);
  for (const node of present.nodes) if (!staying.has(node)) node.remove();
  let at = before ? before.nextSibling : parent.firstChild;
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

function take({ keyed, loose }, child) {
  const key = child.attributes?.key;
  if (key === undefined) {
    const index = loose.findIndex((node) => isOf(node, child));
    return index < 0 ? undefined : loose.splice(index, 1)[0];
  }
  const found = keyed.get(key);
  keyed.delete(key);
  return found && isOf(found, child) ? found : undefined;
}

/** Whether a node can become what a child describes. */
function isOf(node, child) {
  if (typeof child !== "object") return node.nodeType === Node.TEXT_NODE;
  return node.localName === child.tag && descriptions.get(node)?.key === child.attributes.key;
}

function update(node, child) {
  if (typeof child !== "object") {
    if (node.data !== String(child)) node.data = child;
    return node;
  }
  // A description that was used before describes what is there.
  return descriptions.get(node)?.child === child ? node : patch(node, child);
}

function make(child, parent) {
  if (typeof child !== "object") return document.createTextNode(child);
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
  for (const name in before) if (!(name in attributes)) element.removeAttribute(name);
  for (const name in attributes) {
    const value = attributes[name];
    if (value === before[name]) continue;
    if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value === true ? "" : value)) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const event in on) listen(element, event);
  reconcile(element, child.children);
  for (const name in vars) element.style.setProperty(name, vars[name]);
  // Last, because a select takes a value only once it has the option.
  for (const name in prop) if (element[name] !== prop[name]) element[name] = prop[name];
  return element;
}

const listening = new WeakMap();

function listen(element, event) {
  const events = listening.get(element) ?? new Set();
  if (events.has(event)) return;
  listening.set(element, events.add(event));
  element.addEventListener(event, (happened) => descriptions.get(element)?.on[event]?.(happened));
}
