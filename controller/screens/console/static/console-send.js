// What is pressed, sent once: until the answer is there, nothing is sent a second time.

const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
const faults = JSON.parse(document.body.dataset.faults);
const refused = document.getElementById("refused");
const SHOWN = 9000; // milliseconds
const PATIENCE = 20000;
let fading = null;
let sending = false;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

export const hush = () => {
  clearTimeout(fading);
  refused.hidden = true;
};

export const refuse = (what, more = "", kind = "refused") => {
  const small = document.createElement("small");
  small.textContent = more;
  refused.className = kind;
  refused.replaceChildren(what, ...(more ? [small] : []));
  refused.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(hush, SHOWN);
};

const because = (answer) => {
  const wait = answer.wait ? fill(faults.wait_for, { seconds: answer.wait }) : "";
  const code = answer.code ? fill(faults.code, { code: answer.code }) : "";
  return [answer.allowed, wait, code].filter(Boolean).join(" - ");
};

const post = async (path, fields) => {
  const body = new URLSearchParams({ ...fields, secret: meta("secret") });
  const answer = await fetch(`${meta("base")}${path}`, {
    method: "POST",
    body,
    headers: { Accept: "application/json" },
    signal: AbortSignal.timeout(PATIENCE),
  });
  return { ok: answer.ok, ...(await answer.json()) };
};

// What was done and is not to be seen on the page.
export const note = (what) => refuse(what, "", "refused noted");

// What came of it: "" where it was done, else why not; and what there is to be said of it.
export const send = async (path, fields) => {
  if (sending) return null;
  sending = true;
  document.documentElement.classList.add("sending");
  try {
    const answer = await post(path, fields);
    if (answer.ok && answer.done) return { what: "", more: "", said: answer.stays ? answer.said : "" };
    if (answer.ok) return { what: answer.said || faults.refused, more: "" };
    return { what: answer.what || faults.refused, more: because(answer) };
  } catch (problem) {
    const known = [TypeError, SyntaxError, DOMException].some((kind) => problem instanceof kind);
    if (!known) throw problem;
    return { what: faults.unsent, more: "" };
  } finally {
    sending = false;
    document.documentElement.classList.remove("sending");
  }
};
