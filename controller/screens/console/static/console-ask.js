// What is asked before an act is sent: a card, an amount, a seat, a reason, badges and PINs.

const words = JSON.parse(document.body.dataset.words);
const sign = JSON.parse(document.body.dataset.sign);
const parts = Object.fromEntries(
  ["ask", "ask-form", "ask-title", "ask-hint", "ask-fields", "ask-pad", "ask-wrong", "ask-cancel", "ask-send"].map(
    (id) => [id.replace("ask-", ""), document.getElementById(id)],
  ),
);
const DIGITS = "123456789".split("");
// Acts that say all that they are about: others may go on with theirs while one is entered.
const WHOLE = ["WagerPlaced", "WagerRemoved"];
let asked = null;

const picture = () => document.getElementById("console").dataset.seq;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

const made = (tag, kind = "", text = "") => {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text) node.textContent = text;
  return node;
};

// --- amounts: whole numbers of the smallest unit, never fractions -----------------------------

const money = () => {
  const table = document.getElementById("console").dataset;
  const digits = Number(table.digits);
  const parse = (text) => {
    // Between groups of three only: "12,50" is no 1,250.
    const bare = text.replace(table.symbol, "").trim();
    const whole = /^\d{1,3}(?:[,' ]\d{3})+(?![\d,' ])/;
    const plain = bare.replace(whole, (groups) => groups.replace(/[,' ]/g, ""));
    const found = plain.match(/^(\d{1,13})(?:\.(\d*))?$/);
    if (found === null || (found[2] ?? "").length > digits) return null;
    return Number(found[1] + (found[2] ?? "").padEnd(digits, "0"));
  };
  const write = (amount) => {
    const text = String(amount).padStart(digits + 1, "0");
    const whole = text.slice(0, text.length - digits);
    const rest = digits ? text.slice(-digits) : "";
    return /^0*$/.test(rest) ? whole : `${whole}.${rest}`;
  };
  return { parse, write, unit: Number(table.unit), chips: JSON.parse(table.chips) };
};

// --- the number pad ---------------------------------------------------------------------------

export const padFor = (place, inputs) => {
  let target = inputs[0] ?? null;
  for (const input of inputs) input.addEventListener("focus", () => { target = input; });
  const put = (change) => {
    if (target === null) return;
    target.value = change(target.value).slice(0, target.maxLength > 0 ? target.maxLength : 20);
    target.dispatchEvent(new Event("input", { bubbles: true }));
    target.focus();
  };
  const key = (label, change, kind = "") => {
    const button = made("button", kind, label);
    button.type = "button";
    button.addEventListener("pointerdown", (event) => event.preventDefault());
    button.addEventListener("click", () => put(change));
    return button;
  };
  place.replaceChildren(
    ...(target === null
      ? []
      : [
          ...DIGITS.map((digit) => key(digit, (old) => old + digit)),
          key(words.delete, (old) => old.slice(0, -1), "word"),
          key("0", (old) => `${old}0`),
          key(words.clear, () => "", "word"),
        ]),
  );
};

// --- fields -----------------------------------------------------------------------------------

const input = (ask, more) => {
  const label = made("label", "", ask.label);
  const field = document.createElement("input");
  field.id = `field-${ask.name}`;
  field.autocomplete = "off";
  field.value = ask.value;
  Object.assign(field, more);
  label.htmlFor = field.id;
  label.append(field);
  return { label, field };
};

const choice = (name, value, text, hint, kind = "") => {
  const label = made("label", `option ${kind}`);
  const radio = document.createElement("input");
  radio.type = "radio";
  radio.name = name;
  radio.value = String(value);
  radio.id = `field-${name}-${value}`;
  label.htmlFor = radio.id;
  label.append(radio, text);
  if (hint) label.append(made("small", "", hint));
  return { label, radio };
};

const asking = {
  money: (ask) => {
    const { parse, write, unit, chips } = money();
    const { label, field } = input(ask, { inputMode: "decimal", maxLength: 17 });
    const row = made("div", "house-chips");
    for (const [name, value] of chips) {
      const chip = made("button", "", `+ ${name} ${write(value)}`);
      chip.type = "button";
      chip.addEventListener("click", () => {
        field.value = write((parse(field.value) ?? 0) + value);
      });
      row.append(chip);
    }
    const place = made("div");
    place.append(label, row);
    const example = write(chips.at(-1)?.[1] ?? unit);
    const value = () => {
      const amount = parse(field.value);
      if (amount === null) throw new Error(fill(words.no_amount, { field: ask.label, example }));
      return amount;
    };
    return { place, value, number: field };
  },
  count: (ask) => {
    const { label, field } = input(ask, { inputMode: "numeric", maxLength: 9 });
    const value = () => {
      if (!/^\d+$/.test(field.value)) throw new Error(fill(words.missing, { field: ask.label }));
      return Number(field.value);
    };
    return { place: label, value, number: field };
  },
  text: (ask) => {
    const { label, field } = input(ask, { maxLength: 200 });
    const place = made("div");
    const row = made("div", "options");
    for (const option of ask.options) {
      const button = made("button", "option", option.value);
      button.type = "button";
      button.addEventListener("click", () => { field.value = option.value; });
      row.append(button);
    }
    place.append(label, row);
    const value = () => {
      if (!field.value.trim()) throw new Error(fill(words.missing, { field: ask.label }));
      return field.value.trim();
    };
    return { place, value };
  },
  one: (ask) => {
    const place = made("fieldset");
    place.append(made("legend", "", ask.label));
    const row = made("div", "options");
    const radios = ask.options.map((option) => {
      const { label, radio } = choice(ask.name, option.value, option.label, option.hint);
      row.append(label);
      return { radio, value: option.value };
    });
    if (radios.length > 0) radios[0].radio.checked = true;
    place.append(row);
    const value = () => {
      const found = radios.find(({ radio }) => radio.checked);
      if (found === undefined) throw new Error(fill(words.missing, { field: ask.label }));
      return found.value;
    };
    return { place, value };
  },
  card: (ask) => {
    const table = document.getElementById("console").dataset;
    const place = made("fieldset", "card-pick");
    place.append(made("legend", "", ask.label));
    const glyphs = { C: "\u2663\ufe0e", D: "\u2666\ufe0e", H: "\u2665\ufe0e", S: "\u2660\ufe0e" };
    const row = (name, options, kind) => {
      const line = made("div", "options");
      const radios = options.map(([text, said, value, more]) => {
        const { label, radio } = choice(name, value, text, kind ? said : "", `${kind} ${more}`);
        radio.setAttribute("aria-label", said);
        line.append(label);
        return radio;
      });
      place.append(line);
      return radios;
    };
    const ranks = JSON.parse(table.ranks).map(([text, said], at) => [text, said, at, ""]);
    const suits = JSON.parse(table.suits).map(([name, said], at) => [glyphs[name], said, at, `suit-${name}`]);
    const rank = row("rank", ranks, "");
    const suit = row("suit", suits, "suit");
    const value = () => {
      const chosen = [rank, suit].map((radios) => radios.find((radio) => radio.checked));
      if (chosen.includes(undefined)) throw new Error(words.no_card);
      return Number(chosen[1].value) * 13 + Number(chosen[0].value);
    };
    return { place, value };
  },
};

const person = (which, title) => {
  const place = made("fieldset");
  place.append(made("legend", "", title));
  const badge = input({ name: `badge${which}`, label: sign.badge, value: "" }, { maxLength: 64, spellcheck: false });
  const pin = input(
    { name: `pin${which}`, label: sign.pin, value: "" },
    { maxLength: 64, type: "password", inputMode: "numeric" },
  );
  place.append(badge.label, pin.label);
  const take = () => {
    for (const { field, label } of [badge, pin]) {
      if (!field.value) throw new Error(fill(words.missing, { field: label.firstChild.textContent }));
    }
    return { [`badge${which}`]: badge.field.value, [`pin${which}`]: pin.field.value };
  };
  return { place, take, fields: [badge.field, pin.field], pin: pin.field };
};

// --- the dialog -------------------------------------------------------------------------------

const forget = () => {
  for (const field of parts.fields.querySelectorAll('input[type="password"]')) field.value = "";
};

export const openFor = () => (asked === null ? "" : asked.id);

export const leave = () => {
  asked = null;
  forget();
  parts.fields.replaceChildren();
  parts.pad.replaceChildren();
  if (parts.ask.open) parts.ask.close();
};

// `done`: takes the act and the people, and says why not, or nothing where it was done.
export const ask = (button, done) => {
  const fields = JSON.parse(button.dataset.asks).map((one) => ({ ...asking[one.kind](one), name: one.name }));
  const count = Number(button.dataset.people);
  const people = [];
  if (count > 0) people.push(person("", sign.floor));
  if (count > 1) people.push(person("2", sign.second));
  parts.title.textContent = button.querySelector(".label").firstChild.textContent.trim();
  parts.hint.textContent = [button.dataset.sure, count > 1 ? sign.two_people : ""].filter(Boolean).join(" ");
  parts.fields.replaceChildren(...fields.map(({ place }) => place), ...people.map(({ place }) => place));
  parts.wrong.textContent = "";
  const numbers = [...fields.flatMap(({ number }) => (number ? [number] : [])), ...people.flatMap((one) => one.fields)];
  padFor(parts.pad, numbers);
  asked = { id: button.id, seq: picture(), act: button.dataset.act, fields, people, done };
  parts.ask.showModal();
  // Where there is nothing to enter, whoever presses twice goes back.
  (numbers[0] ?? parts.fields.querySelector("input:checked") ?? parts.fields.querySelector("input") ?? parts.cancel).focus();
};

parts.form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (asked === null || parts.send.disabled) return;
  const now = asked;
  let act;
  let people;
  try {
    const said = Object.fromEntries(now.fields.map(({ name, value }) => [name, value()]));
    act = { ...JSON.parse(now.act), ...said };
    people = Object.assign({}, ...now.people.map((one) => one.take()));
  } catch (problem) {
    parts.wrong.textContent = problem.message;
    return;
  }
  forget();
  parts.send.disabled = true;
  try {
    const why = await now.done(act, people, WHOLE.includes(act.type) ? picture() : now.seq);
    if (asked !== now) return;
    if (why === "") leave();
    else if (why !== null) {
      parts.wrong.textContent = why;
      now.people[0]?.pin.focus();
    }
  } finally {
    parts.send.disabled = false;
  }
});
parts.cancel.addEventListener("click", leave);
parts.ask.addEventListener("close", leave);
