// A round played again: steps, plays at any speed, and keeps the address at the step that is shown.

const place = document.getElementById("replay");
const words = place.dataset;
const parts = Object.fromEntries(
  [
    "felt", "now", "former", "later", "former_problem", "later_problem", "play", "speed",
    "position", "long", "count", "frames",
  ].map((id) => [id, document.getElementById(id)]),
);
const LONGEST = 3000; // milliseconds of a wait that is shortened
const SHORTEST = 60;

const say = (text, kind, tag = "p") => {
  const made = document.createElement(tag);
  made.className = kind;
  made.textContent = text;
  return made;
};

const drawn = (text) => {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return document.importNode(parsed, true);
};

const begin = ({ pictures, frames }) => {
  const items = [...parts.frames.querySelectorAll("a")];
  // Where each of the links leads from a step; a step beyond the ends: nowhere.
  const ways = [
    [parts.former, (at) => at - 1],
    [parts.later, (at) => at + 1],
    [parts.former_problem, (at) => frames.findLastIndex((one, here) => one.problem && here < at)],
    [parts.later_problem, (at) => frames.findIndex((one, here) => one.problem && here > at)],
  ];
  const leads = (to) => to >= 0 && to < frames.length;
  let index = Math.max(0, frames.findLastIndex((frame) => frame.seq <= Number(words.seq)));
  let shown = null;
  let timer = null;

  const show = (next) => {
    index = Math.min(frames.length - 1, Math.max(0, next));
    const frame = frames[index];
    if (frame.picture !== shown) {
      parts.felt.replaceChildren(...(frame.picture < 0 ? [] : [drawn(pictures[frame.picture])]));
      shown = frame.picture;
    }
    parts.now.replaceChildren(
      say(`${frame.time} UTC, ${frame.who}`, "time", "span"),
      say(frame.what, "happened"),
      ...(frame.problem ? [say(`${words.problem}: ${frame.problem}`, "mark alarm")] : []),
      ...(frame.refused ? [say(`${words.refused}: ${frame.refused}`, "")] : []),
      ...frame.more.map((text) => say(text, "")),
      ...frame.prompts.map((text) => say(`${words.asked}: ${text}`, "prompt")),
    );
    parts.position.value = String(index);
    parts.count.textContent = words.count
      .replace("#at", String(index + 1))
      .replace("#count", String(frames.length));
    for (const item of items) item.removeAttribute("aria-current");
    items[index].setAttribute("aria-current", "step");
    items[index].scrollIntoView({ block: "nearest" });
    for (const [link, way] of ways) {
      link.classList.toggle("off", !leads(way(index)));
      link.setAttribute("aria-disabled", String(!leads(way(index))));
    }
    history.replaceState(null, "", `?at=${frame.seq}`);
  };

  const pause = () => {
    clearTimeout(timer);
    timer = null;
    parts.play.textContent = words.play;
    parts.play.setAttribute("aria-pressed", "false");
  };

  const wait = () => {
    if (index >= frames.length - 1) {
      pause();
      return;
    }
    const whole = frames[index + 1].at - frames[index].at;
    const shortened = parts.long.checked ? Math.min(whole, LONGEST) : whole;
    const time = Math.max(SHORTEST, shortened / Number(parts.speed.value));
    timer = setTimeout(() => {
      show(index + 1);
      wait();
    }, time);
  };

  const play = () => {
    if (timer !== null) {
      pause();
      return;
    }
    if (index >= frames.length - 1) show(0);
    parts.play.textContent = words.pause;
    parts.play.setAttribute("aria-pressed", "true");
    parts.now.setAttribute("aria-live", "off");
    wait();
  };

  const go = (to) => {
    pause();
    parts.now.setAttribute("aria-live", "polite");
    if (leads(to)) show(to);
  };

  const faster = (by) => {
    const at = parts.speed.selectedIndex + by;
    parts.speed.selectedIndex = Math.min(parts.speed.length - 1, Math.max(0, at));
    if (timer !== null) {
      clearTimeout(timer);
      wait();
    }
  };

  const keys = {
    " ": play,
    ArrowLeft: () => go(index - 1),
    ArrowRight: () => go(index + 1),
    Home: () => go(0),
    End: () => go(frames.length - 1),
    "+": () => faster(1),
    "-": () => faster(-1),
  };

  for (const [link, way] of ways) {
    link.setAttribute("role", "button");
    link.setAttribute("tabindex", "0");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      go(way(index));
    });
    link.addEventListener("keydown", (event) => {
      if (event.key !== " ") return;
      event.preventDefault();
      go(way(index));
    });
  }
  parts.play.addEventListener("click", play);
  parts.speed.addEventListener("change", () => faster(0));
  parts.position.addEventListener("input", () => {
    pause();
    show(Number(parts.position.value));
  });
  parts.frames.addEventListener("click", (event) => {
    const item = event.target.closest("a");
    if (item === null) return;
    event.preventDefault();
    pause();
    show(Number(item.dataset.index));
  });
  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest?.("button, select, input, a, [role=button]") ?? null;
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in keys)) return;
    if (busy !== null && (event.key === " " || busy.matches("select, input"))) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const id of ["play", "speeds", "positions", "longs", "keys"]) {
    document.getElementById(id).hidden = false;
  }
  show(index);
};

try {
  const answer = await fetch(words.source, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(String(answer.status));
  begin(await answer.json());
} catch (problem) {
  parts.count.textContent = words.failed;
  console.error(problem);
}
