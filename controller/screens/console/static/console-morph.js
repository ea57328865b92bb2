// A new picture put in place of the old one, node by node: what stays is not touched, so that focus,
// scrolling and open dialogs stay as well. Nodes with an id are the same node wherever they stand.

const KEEPS = { DIALOG: ["open"], DETAILS: ["open"], BUTTON: ["aria-busy", "aria-disabled"] };

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id : "");

const alike = (old, made) =>
  old.nodeType === made.nodeType && old.nodeName === made.nodeName && keyOf(old) === keyOf(made);

const attributes = (old, made) => {
  const kept = KEEPS[old.nodeName] ?? [];
  for (const { name } of [...old.attributes]) {
    if (!made.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of made.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
};

const children = (old, made) => {
  const named = new Map();
  for (const child of old.children) if (child.id) named.set(child.id, child);
  let at = old.firstChild;
  for (const wanted of [...made.childNodes]) {
    const key = keyOf(wanted);
    let found = null;
    if (key) {
      const known = named.get(key);
      if (known !== undefined && alike(known, wanted)) found = known;
    } else if (at !== null && !keyOf(at) && alike(at, wanted)) {
      found = at;
    }
    if (found === null) {
      old.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    one(found, wanted);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
};

const one = (old, made) => {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== made.nodeValue) old.nodeValue = made.nodeValue;
    return;
  }
  attributes(old, made);
  children(old, made);
};

export const morph = (place, html) => {
  const inside = place.contains(document.activeElement);
  const focused = document.activeElement?.id ?? "";
  const parsed = new DOMParser().parseFromString(html, "text/html");
  children(place, parsed.body);
  if (!inside || document.activeElement?.id === focused) return;
  // What had the focus is gone: whoever goes on with the keyboard begins at the picture again, and
  // at none of its buttons, where a second press would do something else.
  (document.getElementById(focused) ?? place).focus({ preventScroll: true });
};
