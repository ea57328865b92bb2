"""hil/device/hands.py and answers.py -> hil/CONTROL.md, the page of the control socket's verbs.

python -m hil.front.control_page --check     exits with 1 if the page is stale
python -m hil.front.control_page --write     writes it if it is stale
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hil.device import hands
from hil.device.answers import ANSWERS, LAMPS, MECHANISM, READ_BY_CONFORM, SEAT, Told
from hil.device.breaks import BREAKS
from hil.device.hands import Hand
from hil.front.hand_words import Word, paragraphs, verbs_of, words

PAGE: Final = Path(__file__).parent.parent / "CONTROL.md"
EXIT_STALE: Final = 1
_HEAD: Final = """\
# The control socket of a simulated device

<!-- Generated from hil/device/hands.py, answers.py by hil.front.control_page. Not to be edited. -->

`holecard sim shoe --dir run/shoe --create` runs a shoe and says where its control socket is. What
hands can do at the device is one line of JSON each:

```
{"do": "draw", "count": 2}
```

and the answer is one line too:

```
{"ok": true, "answer": {"queued": 2, "ms": 164}}
{"ok": false, "error": "Expected int >= 1", "where": "count", "allowed": "a whole number ..."}
```

`where` is the field that is wrong; `do` when there is no such verb; the verb itself when the line
is well-formed and the device's state does not allow it. `error` and `allowed` are for people.

`holecard sim do run/shoe/control draw count=2` sends one from a shell. Unknown verbs and fields,
and a field that is there twice, are refused, and what is refused changes nothing; a line has at
most 65,536 bytes. The socket is for the one who runs the device (mode 0600). Fields without a
default must be there. Lines are answered one after the other, whoever they come from, and several
clients may be there at once.

Without power only `describe`, `plug` and `line` are answered, and while the firmware hangs these,
`freeze` and `power` now. What hands do is done to the device, not to its firmware: what lies in it,
its switches and what is broken stay as they are when the power goes.

## A simulator of your own

Whoever makes a device and simulates it can have `holecard conform --control` do to it what people
do, without this program. It takes a UNIX stream socket and the verbs that the device can do; a verb
or a field that it cannot do is answered `"ok": false` with `where` as above, and the items that
need it are then skipped, by name. Answers may have more fields than are told here, or fewer; all
that conform reads of them is
{read}. A hand may be answered before
what it does is over: what becomes of it is on the wire.

"""
_SECTIONS: Final = (
    ("Any device", hands.Anywhere),
    ("Shoe", hands.AtShoe),
    ("Shuffler", hands.AtShuffler),
    ("Station", hands.AtStation),
)


def page() -> str:
    names = [f"`{name}`" for name in READ_BY_CONFORM]
    read = f"{', '.join(names[:-1])} and {names[-1]}"
    return _HEAD.replace("{read}", read) + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for title, union in _SECTIONS:
        yield f"## {title}\n"
        for verb, hand in verbs_of(union).items():
            yield from _verb(verb, hand)
    yield "## Breaks\n"
    yield "Deliberate defects for `break` and `--break`, and what in PROTOCOL.md catches them.\n"
    yield "| name | what is wrong | caught by | for |\n|---|---|---|---|"
    for broken in BREAKS:
        profiles = ", ".join(broken.profiles) or "all"
        yield f"| {broken.name} | {broken.text} | {', '.join(broken.items)} | {profiles} |"


def _verb(verb: str, hand: type[Hand]) -> Iterator[str]:
    yield f"### {verb}\n"
    for paragraph in paragraphs(hand):
        yield textwrap.fill(paragraph, 100, break_on_hyphens=False) + "\n"
    fields = words(hand)
    if fields:
        yield "| field | allowed | default |\n|---|---|---|"
        yield from (_row(word) for word in fields)
        yield ""
    yield from _told("Answer", ANSWERS[hand])
    if hand is hands.Describe:
        for profile, told in MECHANISM.items():
            yield from _told(f"`mechanism` of a {profile}", told)
        yield from _told("Each of its `seats`", SEAT)
        yield from _told("`lamps` of a seat", LAMPS)


def _told(of: str, told: tuple[Told, ...]) -> Iterator[str]:
    if not told:
        yield f"{of}: no fields.\n"
        return
    yield f"{of}:\n\n| field | | |\n|---|---|---|"
    yield from (f"| {one.name} | {one.kind} | {one.text} |" for one in told)
    yield ""


def _row(word: Word) -> str:
    default = "" if word.default is None else f"`{word.default}`"
    allowed = word.allowed.replace("|", "\\|")
    return f"| {word.name} | {allowed} | {default} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hil.front.control_page",
        description="Makes hil/CONTROL.md from hil/device/hands.py.",
        epilog="Exit codes: 0 fresh or written; 1 the page is stale.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="say whether the page is stale")
    what.add_argument("--write", action="store_true", help="write the page if it is stale")
    chosen = parser.parse_args(arguments)
    made = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made:
        return 0
    if chosen.write:
        PAGE.write_text(made, encoding="utf-8")
        print("hil/CONTROL.md: written")
        return 0
    print("hil/CONTROL.md: is stale")
    print("make it anew: python -m hil.front.control_page --write", file=sys.stderr)
    return EXIT_STALE


if __name__ == "__main__":
    sys.exit(main())
