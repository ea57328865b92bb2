// The record as it grows: each new line on top of what is there, until somebody pauses it.

const MOST = 400; // lines that stay on the page
const place = document.getElementById("live");
const words = place.dataset;
const body = place.querySelector("tbody");
const state = document.getElementById("state");
const button = document.getElementById("follow");
let paused = false;
let waiting = [];

const cell = (kind, ...inner) => {
  const made = document.createElement("td");
  made.className = kind;
  made.append(...inner);
  return made;
};

const line = (text, kind, label = "") => {
  const made = document.createElement("span");
  made.className = `line ${kind}`;
  if (label) {
    const head = document.createElement("span");
    head.className = "label";
    head.textContent = label;
    made.append(head);
  }
  made.append(text);
  return made;
};

const row = (told) => {
  const made = document.createElement("tr");
  made.id = `s${told.seq}`;
  made.className = `${told.quiet ? "quiet" : ""} ${told.refused ? "refusal" : ""}`;
  const link = document.createElement("a");
  link.href = `${words.records}/${told.seq}`;
  link.textContent = String(told.seq);
  link.setAttribute("aria-label", words.link.replace("#", told.seq));
  const time = document.createElement("time");
  time.dateTime = told.stamp;
  time.textContent = told.time;
  time.className = told.clock === "synced" ? "" : "unsure";
  const seat = told.seat ? ` (${words.seat.replace("#", told.seat)})` : "";
  made.append(
    cell("number", link),
    cell("time", time),
    cell("number pause"),
    cell("who", `${told.who}${seat}`),
    cell(
      "what",
      line(told.what, "happened"),
      ...(told.refused ? [line(told.refused, "fact", words.refused)] : []),
      ...told.facts.map((text) => line(text, "fact")),
      ...told.prompts.map((text) => line(text, "prompt", words.asked)),
    ),
  );
  return made;
};

const put = (told) => {
  if (document.getElementById(`s${told.seq}`) !== null) return;
  const below = window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;
  body.append(row(told));
  while (body.children.length > MOST) body.firstElementChild.remove();
  if (below) window.scrollTo(0, document.body.scrollHeight);
};

const say = (text) => {
  state.textContent = text;
};

button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? words.follow : words.pause;
  say(paused ? words.paused : words.following);
  if (!paused) {
    for (const told of waiting) put(told);
    waiting = [];
  }
});

const source = new EventSource(words.source);
source.addEventListener("here", () => say(paused ? words.paused : words.following));
source.addEventListener("record", (event) => {
  const told = JSON.parse(event.data);
  if (told.quiet && words.quiet) return; // how the record was kept is not asked for
  if (paused) waiting = [...waiting, told].slice(-MOST);
  else put(told);
});
source.addEventListener("over", (event) => {
  source.close();
  button.hidden = true;
  say(JSON.parse(event.data).why);
});
source.addEventListener("error", () => {
  if (source.readyState !== EventSource.CLOSED) say(words.lost);
});
window.scrollTo(0, document.body.scrollHeight);
