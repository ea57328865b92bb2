// The dealer's screen. Nothing lives here: what is shown comes from the table, a press goes to it.

import { ask, leave, openFor, padFor } from "./console-ask.js";
import { morph } from "./console-morph.js";
import { hush, note, refuse, send } from "./console-send.js";
import { follow } from "./console-stream.js";

const byId = (id) => document.getElementById(id);
const base = document.querySelector('meta[name="base"]').content;
const faults = JSON.parse(document.body.dataset.faults);
const main = byId("table");
const banner = byId("banner");
const live = byId("live");
let newest = -1;
let said = "";
let away = false;
let waiting = 0;
let others = false; // signed in here than the page's head says
// Milliseconds for which a new instruction takes no press: a finger that bounces, or presses twice,
// means the one before.
const BOUNCE = 300;
const LOOK = 500; // milliseconds

// --- what is shown ----------------------------------------------------------------------------

const lock = () => {
  const all = 'button.act[data-act], #open-sheet, #sign-in, #sign-out';
  for (const button of document.querySelectorAll(all)) button.disabled = away;
};

const noted = () => byId("refused").matches(".noted");

const settle = () => {
  const answers = () => document.querySelectorAll("#answers button.act");
  for (const button of answers()) button.setAttribute("aria-disabled", "true");
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    for (const button of answers()) button.removeAttribute("aria-disabled");
  }, BOUNCE);
};

const tell = (what, more, todo) => {
  const small = document.createElement("small");
  small.textContent = more;
  banner.replaceChildren(what, small, ...(todo ? [todo] : []));
  banner.hidden = false;
  document.body.classList.add("old");
};

// Who is signed in here stands outside of what is morphed: the page is loaded again, once nobody is
// at anything and nothing is being said.
const loadAnew = () => {
  const busy = document.documentElement.matches(".sending") || !byId("refused").hidden;
  if (others && !busy && document.querySelector("dialog[open]") === null) location.reload();
};
setInterval(loadAnew, LOOK);

const shown = ({ seq, html, say, signed }) => {
  others = signed !== document.body.dataset.signed;
  away = false;
  banner.hidden = true;
  document.body.classList.remove("old");
  document.documentElement.dataset.live = ""; // from here on presses are taken
  morph(main, html);
  lock();
  if (seq !== newest && !noted()) hush();
  newest = seq;
  if (say !== said) {
    hush();
    settle();
    said = say;
    live.textContent = say;
  }
  const open = openFor();
  if (open && byId(open) === null) {
    leave();
    refuse(faults.gone);
  }
};

const lost = () => {
  away = true;
  lock();
  tell(faults.lost, faults.lost_todo);
};

const ended = () => {
  away = true;
  lock();
  leave();
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = faults.reload;
  again.addEventListener("click", () => location.reload());
  tell(faults.over, faults.over_todo, again);
};

// --- presses ----------------------------------------------------------------------------------

const act = async (what, people, seq) => {
  const answer = await send("/act", { act: JSON.stringify(what), seq, ...people });
  if (answer === null) return null;
  if (answer.said) note(answer.said);
  return answer.more ? `${answer.what} - ${answer.more}` : answer.what;
};

const press = async (button) => {
  hush();
  const asks = JSON.parse(button.dataset.asks);
  if (asks.length > 0 || Number(button.dataset.people) > 0 || button.dataset.sure) {
    byId("sheet")?.close();
    ask(button, act);
    return;
  }
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    const why = await act(JSON.parse(button.dataset.act), {}, byId("console").dataset.seq);
    if (why === null) refuse(faults.busy);
    else if (why) refuse(why);
    else if (why === "") byId("sheet")?.close();
  } finally {
    button.removeAttribute("aria-busy");
  }
};

const listKeys = () => {
  const rows = [...document.querySelectorAll("[data-key]")].map((button) => {
    const row = document.createElement("div");
    const key = document.createElement("dt");
    const mark = document.createElement("kbd");
    const means = document.createElement("dd");
    mark.textContent = button.dataset.key;
    means.textContent = (button.querySelector(".label") ?? button).firstChild.textContent.trim();
    key.append(mark);
    row.append(key, means);
    return row;
  });
  byId("keys-list").replaceChildren(...rows);
};

const open = (name) => {
  if (name === "keys") listKeys();
  if (name === "sign") {
    byId("sign-wrong").textContent = "";
    padFor(byId("sign-pad"), [byId("sign-badge"), byId("sign-pin")]);
  }
  byId(name)?.showModal();
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null || button.disabled || button.ariaDisabled === "true") return;
  if (button.dataset.open) open(button.dataset.open);
  else if (button.dataset.close) byId(button.dataset.close)?.close();
  else if (button.dataset.act) press(button);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.closest?.("input, select, textarea")) return;
  if (document.querySelector("dialog[open]") !== null) return;
  const key = event.key.toLowerCase();
  const button = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
  if (button === undefined || button.disabled) return;
  event.preventDefault();
  button.focus();
  button.click();
});

// --- this screen's own ------------------------------------------------------------------------

byId("sign-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [badge, pin] = ["sign-badge", "sign-pin"].map(byId);
  const fields = {
    badge: badge.value,
    pin: pin.value,
    relieve: byId("sign-relieve").checked ? "yes" : "no",
    role: byId("sign-technician").checked ? "technician" : "dealer",
  };
  pin.value = "";
  const answer = await send("/sign-in", fields);
  if (answer === null) return;
  if (answer.what === "") {
    location.reload();
    return;
  }
  byId("sign-wrong").textContent = [answer.what, answer.more].filter(Boolean).join(" - ");
  pin.focus();
});
byId("sign").addEventListener("close", () => byId("sign-form").reset());

byId("sign-out")?.addEventListener("click", async () => {
  const answer = await send("/sign-out", {});
  if (answer === null) return;
  if (answer.what === "") location.reload();
  else refuse(answer.what, answer.more);
});

byId("looks-form").addEventListener("change", async () => {
  const looks = Object.fromEntries(new FormData(byId("looks-form")));
  const root = document.documentElement;
  root.className = `theme-${looks.theme} suits-${looks.suits}`;
  const answer = await send("/looks", looks);
  if (answer !== null && answer.what) refuse(answer.what, answer.more);
});

follow(`${base}/stream`, { shown, lost, ended });
