"""hil/device/hands.py -> hil/CONTROL.md, the page of the control socket's verbs.

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
from hil.device.breaks import BREAKS
from hil.device.hands import Hand
from hil.front.hand_words import Word, text, verbs_of, words

PAGE: Final = Path(__file__).parent.parent / "CONTROL.md"
EXIT_STALE: Final = 1
_HEAD: Final = """\
# The control socket of a simulated device

<!-- Generated from hil/device/hands.py by hil.front.control_page. Not to be edited. -->

`holecard sim shoe --dir run/shoe --create` runs a shoe and says where its control socket is. What
hands can do at the device is one line of JSON each:

```
{"do": "draw", "count": 2}
```

and the answer is one line too:

```
{"ok": true, "answer": {"drawn": 2}}
{"ok": false, "error": "Expected int >= 1", "where": "count", "allowed": "a whole number ..."}
```

`holecard sim do run/shoe/control draw count=2` sends one from a shell. Unknown verbs and fields are
refused, and what is refused changes nothing; a line has at most 65,536 bytes. The socket is for the
one who runs the device (mode 0600). Fields without a default must be there.

"""
_SECTIONS: Final = (
    ("Any device", hands.Anywhere),
    ("Shoe", hands.AtShoe),
    ("Shuffler", hands.AtShuffler),
    ("Station", hands.AtStation),
)


def page() -> str:
    return _HEAD + "\n".join(_lines()) + "\n"


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
    yield textwrap.fill(text(hand), 100) + "\n"
    fields = words(hand)
    if fields:
        yield "| field | allowed | default |\n|---|---|---|"
        yield from (_row(word) for word in fields)
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
