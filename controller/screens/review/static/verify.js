// How a run stands, asked again until it is over.

const EVERY = 2000; // milliseconds
const place = document.getElementById("run");

const again = async () => {
  const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const now = page.getElementById("run");
  if (now === null) return; // the session is over: the page stays, with its link
  place.replaceChildren(...now.childNodes);
  if (now.dataset.running) setTimeout(again, EVERY);
};

setTimeout(again, EVERY);
