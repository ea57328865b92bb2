// The table as it changes. Read by hand, so that a line that has fallen silent is noticed too: the
// table says at least every 15 seconds that it is there. A lost line is said at once, and begun again.

const FIRST = 500; // milliseconds until it is tried again
const LONGEST = 10000;
const SILENT = 35000;
const TURNED_AWAY = [401, 403, 404];

class Ended extends Error {}

const told = (block) => {
  let kind = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return { kind, data: data.join("\n") };
};

const pause = (milliseconds) =>
  new Promise((done) => {
    const over = () => {
      clearTimeout(timer);
      window.removeEventListener("online", over);
      done();
    };
    const timer = setTimeout(over, milliseconds);
    window.addEventListener("online", over);
  });

const read = async (address, shown) => {
  const line = new AbortController();
  const cut = () => line.abort();
  window.addEventListener("offline", cut);
  let silence = null;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => line.abort(), SILENT);
  };
  heard();
  try {
    const answer = await fetch(address, {
      signal: line.signal,
      cache: "no-store",
      headers: { Accept: "text/event-stream" },
    });
    if (TURNED_AWAY.includes(answer.status)) throw new Ended();
    if (!answer.ok) return;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const { kind, data } of blocks.map(told)) {
        if (kind === "table") shown(JSON.parse(data));
        if (kind === "over") throw new Ended();
      }
    }
  } catch (problem) {
    if (problem instanceof Ended) throw problem;
    if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
  } finally {
    window.removeEventListener("offline", cut);
    clearTimeout(silence);
    line.abort();
  }
};

export const follow = async (address, { shown, lost, ended }) => {
  let wait = FIRST;
  const fresh = (table) => {
    wait = FIRST;
    shown(table);
  };
  for (;;) {
    try {
      await read(address, fresh);
    } catch (problem) {
      if (!(problem instanceof Ended)) throw problem;
      ended();
      return;
    }
    lost();
    await pause(wait);
    wait = Math.min(LONGEST, wait * 2);
  }
};
