// What the bench page does: it shows what the stream says, and posts one thing for each press.
const table = document.getElementById("table");
const said = document.getElementById("said");
const lost = document.getElementById("lost");
const secret = document.querySelector("meta[name=bench-secret]").content;
let fading = 0;

function tell(words, bad) {
  said.textContent = words;
  said.className = bad ? "bad" : "good";
  clearTimeout(fading);
  fading = setTimeout(() => { said.textContent = ""; }, bad ? 9000 : 2500);
}

async function post(what, body) {
  try {
    const answer = await fetch(`/${what}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Bench": secret },
      body,
    });
    const told = await answer.json();
    if (told.done) return true;
    tell(told.allowed ? `${told.what}. Allowed: ${told.allowed}` : told.what, true);
  } catch {
    tell("The demo does not answer.", true);
  }
  return false;
}

// --- the table, put in place of what was there: same ids stay the same elements, so that focus and a
// press that has begun are not lost.
function morph(now, then) {
  for (const one of [...now.attributes]) {
    if (one.name !== "style" && !then.hasAttribute(one.name)) now.removeAttribute(one.name);
  }
  for (const one of then.attributes) {
    if (now.getAttribute(one.name) !== one.value) now.setAttribute(one.name, one.value);
  }
  const wanted = [...then.childNodes];
  const byId = new Map([...now.children].filter((one) => one.id).map((one) => [one.id, one]));
  let at = now.firstChild;
  for (const next of wanted) {
    const twin = next.id ? byId.get(next.id) : at;
    const fits = twin && twin.nodeType === next.nodeType && twin.nodeName === next.nodeName
      && (twin.id || "") === (next.id || "");
    if (!fits) {
      now.insertBefore(next, at);
      continue;
    }
    if (twin !== at) now.insertBefore(twin, at);
    else at = at.nextSibling;
    if (twin.nodeType === Node.ELEMENT_NODE) morph(twin, next);
    else if (twin.nodeValue !== next.nodeValue) twin.nodeValue = next.nodeValue;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function show(html) {
  const fresh = document.createElement("div");
  fresh.id = "table";
  fresh.innerHTML = html;
  const held = document.activeElement;
  const homes = [];
  for (let one = held; one && one !== table; one = one.parentElement) {
    if (one !== held && one.id) homes.push(one.id);
  }
  morph(table, fresh);
  periods();
  if (held && !held.isConnected) stayNear(homes);
}

// What had the focus is gone ("Take seat 3" once it is taken): its neighbour has it now.
function stayNear(homes) {
  for (const id of homes) {
    const next = document.getElementById(id)?.querySelector("button:not(:disabled)");
    if (next) {
      next.focus({ preventScroll: true });
      return;
    }
  }
}

function periods() {
  for (const lamps of table.querySelectorAll(".lamps")) {
    lamps.style.setProperty("--period", `${lamps.dataset.period || 1000}ms`);
    if (lamps.classList.contains("chase")) {
      [...lamps.children].forEach((lamp, place, all) => {
        lamp.style.animationDelay = `${(Number(lamps.dataset.period) * place) / all.length}ms`;
      });
    }
  }
}

const stream = new EventSource("/stream");
stream.addEventListener("bench", (event) => {
  lost.hidden = true;
  show(JSON.parse(event.data).html);
});
stream.addEventListener("open", () => { lost.hidden = true; });
stream.addEventListener("error", () => { lost.hidden = false; });
periods();

// --- presses
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-device], button[data-at], button[data-post]");
  if (!button || button.disabled || button.classList.contains("busy")) return;
  const data = button.dataset;
  const device = data.device
    || document.querySelector(`select[data-faults="${data.at}"]`)?.value;
  button.classList.add("busy");
  if (data.press) {
    const hand = { do: "press", seat: Number(data.seat), button: data.press };
    await post("hand", JSON.stringify({ device, hand }));
  } else if (data.button) {
    if (await post("hand", JSON.stringify({ device, button: data.button }))) {
      tell(`${button.textContent.trim()}, ${device}: done`, false);
    }
  } else {
    const body = {};
    if (data.seat) body.seat = Number(data.seat);
    if (data.how) body.how = data.how;
    if (data.choice) body.choice = data.choice;
    if (await post(data.post, JSON.stringify(body)) && data.post === "game") {
      tell("Another game after this round", false);
    }
  }
  button.classList.remove("busy");
});

document.getElementById("next-card").addEventListener("change", async (event) => {
  const how = event.target.value;
  if (await post("next-card", JSON.stringify({ how }))) {
    tell(`The next card ${event.target.selectedOptions[0].textContent}`, false);
  }
});

// --- every verb
const atDevice = document.getElementById("at-device");
function verbs() {
  const { profile } = atDevice.selectedOptions[0].dataset;
  for (const one of document.querySelectorAll(".verbs")) one.hidden = one.dataset.profile !== profile;
}
atDevice.addEventListener("change", verbs);
verbs();

// Numbers go as they were typed: a script's own are not whole beyond 53 bits.
function value(field) {
  const text = field.value.trim();
  if (field.dataset.kind === "list") return JSON.stringify(text.split(/[\s,]+/).filter(Boolean));
  if (field.dataset.kind === "text") return JSON.stringify(text);
  try {
    JSON.parse(text);
    return text;
  } catch {
    return JSON.stringify(text);
  }
}

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const parts = [`"do":${JSON.stringify(form.dataset.verb)}`];
  for (const field of form.querySelectorAll("[name]")) {
    if (field.value.trim() !== "") parts.push(`${JSON.stringify(field.name)}:${value(field)}`);
  }
  const body = `{"device":${JSON.stringify(atDevice.value)},"hand":{${parts.join(",")}}}`;
  if (await post("hand", body)) tell(`${form.dataset.verb} at ${atDevice.value}: done`, false);
});
