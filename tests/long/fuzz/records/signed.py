"""Changes of what is signed, and of the files beside the segments."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any, Final

from tests.long.fuzz.records.mutations import (
    Mutate,
    Mutation,
    changed_entry,
    entries_of,
)
from tests.support.audit.record.resigning import (
    Draft,
    Files,
    Json,
    Signing,
    encode,
    put_together,
)

_LINES: Final = (
    *("", " ", "x", "0", "-1", "01", "1", "9" * 18, "9" * 19, str(2**63), "é", "\t", "\0", "+1"),
    *("AAAA", "A" * 43 + "=", "A" * 44, "holecard boot key 2", "0" * 16, "F" * 16, "1e3", "٣"),
)
"""Lines in the place of another line."""


def _spoilt(line: str, random: Random) -> str:
    if line.isdecimal() and random.random() < 0.6:
        return str(int(line) + random.choice((1, -1, 2, -2, 10)))
    if line and random.random() < 0.5:
        at = random.randrange(len(line))
        return line[:at] + random.choice("0aA+/= -\t\x7f\x85\u2028é") + line[at + 1 :]
    return random.choice((f"{line} ", f" {line}", f"{line}\r", line.upper(), *_LINES))


def _text(draft: Draft, random: Random) -> Mutation | None:
    """Another line in the text of a note, signed again with the right key."""
    notes = entries_of(draft, "checkpoint", "certificate", "witnessed")
    if not notes:
        return None
    at, entry = random.choice(notes)
    seed = random.random()
    way = random.choice(("line", "line", "line", "more", "less", "empty", "twice"))

    def change(record: Json, now: Signing) -> Json:
        chance = Random(seed)
        above, _, below = record["data"]["note"].rpartition("\n\n")
        lines = above.split("\n")
        which = chance.randrange(len(lines))
        if way == "line":
            lines[which] = _spoilt(lines[which], chance)
        elif way == "more":
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(_LINES))
        elif way == "less":
            del lines[which]
        elif way == "empty":
            lines.insert(which, "")
        else:
            lines.insert(which, lines[which])
        text = "\n".join(lines) + "\n"
        if record["kind"] == "certificate":
            note = now.by_table(text)
        elif record["kind"] == "checkpoint":
            note = now.checkpoint(text, record["boot"])
        else:
            note = f"{now.checkpoint(text, entry.signer)}{below.split(chr(10))[-2]}\n"
        return {**record, "data": {"note": note}}

    return changed_entry(draft, at, f"note text {way}", "text", change)


def _signature(draft: Draft, random: Random) -> Mutation | None:
    """Another signature line in a note."""
    notes = entries_of(draft, "checkpoint", "certificate", "witnessed")
    if not notes:
        return None
    at, _ = random.choice(notes)
    seed, way = random.random(), random.choice(tuple(_SIGNATURES))

    def change(record: Json, now: Signing) -> Json:
        above, _, below = record["data"]["note"].rpartition("\n\n")
        lines = below.split("\n")[:-1]
        made = _SIGNATURES[way](lines, f"{above}\n", now, Random(seed))
        note = f"{above}\n\n" + "".join(f"{line}\n" for line in made)
        return {**record, "data": {"note": note}}

    return changed_entry(draft, at, f"signature {way}", "signature", change)


_FOREIGN: Final = "\N{EM DASH} stranger.example AAAAAAA="
_ODD_NAMES: Final = ("a+b", "a\tb", "a\u2003b", "a\x85b", "", "ä")
_ODD_BASE64: Final = ("AAAAAAB=", "AAAA", "AAAAAA==", "AAAA AAA=", "", "=", "AAAAAAA")
_Lines = Callable[[list[str], str, Signing, Random], list[str]]
_SIGNATURES: Final[dict[str, _Lines]] = {
    "none": lambda lines, text, now, random: [],
    "foreign before": lambda lines, text, now, random: [_FOREIGN, *lines],
    "foreign after": lambda lines, text, now, random: [*lines, _FOREIGN],
    "foreign alone": lambda lines, text, now, random: [_FOREIGN],
    "many": lambda lines, text, now, random: [*lines, *[_FOREIGN] * random.choice((98, 99, 150))],
    "long": lambda lines, text, now, random: [*lines, f"\N{EM DASH} {'s' * 140_000} AAAAAAA="],
    "twice": lambda lines, text, now, random: lines * 2,
    "reversed": lambda lines, text, now, random: lines[::-1],
    "of another boot": lambda lines, text, now, random: [now.line(text, "f" * 16)[:-1]],
    "of another text": lambda lines, text, now, random: [now.line(f"{text}x\n", now.boot)[:-1]],
    "wrong beside": lambda lines, text, now, random: [
        *lines,
        lines[0][:-9] + ("A" if lines[0][-9] != "A" else "B") + lines[0][-8:],
    ],
    "spoilt": lambda lines, text, now, random: [_spoilt(lines[0], random), *lines[1:]],
    "no dash": lambda lines, text, now, random: [lines[0].replace("\N{EM DASH}", "-"), *lines[1:]],
    "odd name": lambda lines, text, now, random: [
        *lines,
        f"\N{EM DASH} {random.choice(_ODD_NAMES)} AAAAAAA=",
    ],
    "odd base64": lambda lines, text, now, random: [
        *lines,
        f"\N{EM DASH} x {random.choice(_ODD_BASE64)}",
    ],
}


def _identity(draft: Draft, random: Random) -> Mutation | None:
    """A field of `opened`, with the hashes that follow from it in all records of the boot."""
    found = entries_of(draft, "opened")
    if not found:
        return None
    _, entry = random.choice(found)
    boot, name = entry.record["boot"], random.choice(("sw", "conf", "code", "game"))
    data = dict(entry.record["data"])
    if name == "game":
        game = json.loads(json.dumps(data["game"]))
        seats = game.get("seats", 3)
        game["seats"] = seats + 1 if isinstance(seats, int) else 5
        data["game"] = game
    else:
        data[name] = sha256(f"{data[name]} {random.random()}".encode()).hexdigest()
    code = bytes.fromhex(data["code"])
    data["proc"] = sha256(code + encode(data["game"])).hexdigest()
    entries = []
    for one in draft.entries:
        record = one.record
        if record["boot"] == boot:
            parts = [part for part in ("sw", "conf", "proc") if part in record]
            record = {**record, **{part: data[part][:16] for part in parts}}
        if one is entry:
            record = {**record, "data": data}
        entries.append(replace(one, record=record))
    changed = replace(draft, entries=tuple(entries))
    return Mutation(changed, "identity", f"opened: {name}")


# --- files ------------------------------------------------------------------------------------


def _file(draft: Draft, random: Random) -> Mutation | None:
    """A file changed, removed or added."""
    files = put_together(draft)
    name = random.choice(tuple(_FILES))
    made = _FILES[name](files, random)
    if made is None:
        return None
    path, data = made
    if data is None:
        return Mutation(replace(draft, without=frozenset((path,))), f"file {name}", _folder(path))
    if files.get(path) == data:
        return None
    return Mutation(replace(draft, files={path: data}), f"file {name}", _folder(path))


def _folder(path: str) -> str:
    return path.partition("/")[0]


_Made = tuple[str, bytes | None] | None


def _beside(files: Files, random: Random) -> str | None:
    found = [path for path in files if not path.startswith("segments/")]
    return random.choice(found) if found else None


def _removed(files: Files, random: Random) -> _Made:
    return random.choice(list(files)), None


def _flipped(files: Files, random: Random) -> _Made:
    path = _beside(files, random) if random.random() < 0.7 else random.choice(list(files))
    if path is None:
        return None
    data = bytearray(files[path])
    end = len(bytes(data).rstrip(b"\0"))
    at = random.randrange(end if random.random() < 0.7 else len(data))
    data[at] ^= 1 << random.randrange(8)
    return path, bytes(data)


def _cut(files: Files, random: Random) -> _Made:
    path = random.choice(list(files))
    return path, files[path][: random.randrange(len(files[path]))]


def _longer(files: Files, random: Random) -> _Made:
    path = random.choice(list(files))
    return path, files[path] + random.choice((b"\0", b"\n", b" ", b"x", b"{}", bytes(512)))


def _behind(files: Files, random: Random) -> _Made:
    """Bytes behind the last frame of a segment."""
    path = random.choice([one for one in files if one.startswith("segments/")])
    data = files[path].rstrip(b"\0")
    gap = random.choice((0, 0, 1, 40, 300))
    piece = random.choice(
        (b"\1", b"{", random.randbytes(8), data[24:90], data[-300:], b"\xff" * 56)
    )
    return path, (data + bytes(gap) + piece).ljust(len(files[path]), b"\0")[: len(files[path])]


_STRANGE: Final = (
    *("segments/00000099.seg", "segments/1.seg", "segments/x", "segments/spare.seg", "x", "lock"),
    *("tails/x.json", "tails/x", "cosigned/1.note", "cosigned/01.note", "cosigned/x.note"),
    *("cosigned/0.note", "retired/00000001.note", "retired/1.note", "index.db", "keys/x"),
    *("cosigned/999999999999999999.note", "segments/00000000.seg", "tails/sub/x.json"),
)


def _strange(files: Files, random: Random) -> _Made:
    path = random.choice(_STRANGE)
    return None if path in files else (path, random.choice((b"", b"x", b"{}", bytes(5000))))


def _renamed_note(files: Files, random: Random) -> _Made:
    """A countersigned checkpoint under the name of another size."""
    notes = [path for path in files if path.startswith("cosigned/")]
    if not notes:
        return None
    path = random.choice(notes)
    size = int(path[9:-5]) + random.choice((1, -1, 5))
    return f"cosigned/{max(0, size)}.note", files[path]


def _json_file(files: Files, random: Random) -> _Made:
    """A field of a file of quarantined bytes."""
    tails = [path for path in files if path.startswith("tails/")]
    if not tails:
        return None
    path = random.choice(tails)
    kept = json.loads(files[path])
    name = random.choice(list(kept))
    way = random.randrange(7)
    if way == 0:
        del kept[name]
    elif way == 1:
        kept["more"] = 1
    elif way == 2:
        kept = dict(reversed(kept.items()))
    elif way == 3:
        return path, json.dumps(kept, indent=1).encode()
    elif way == 4:
        kept[name] = random.choice((0, 1.0, "", None, [], True, f"{kept[name]}", [kept[name]]))
    elif way == 5:
        text = encode(kept)
        return path, text[:-1] + b',"' + name.encode() + b'":' + encode(kept[name]) + b"}"
    else:
        return path, random.choice((b"\xef\xbb\xbf", b" ", b"[")) + encode(kept)
    return path, encode(kept)


def _header(files: Files, random: Random) -> _Made:
    path = random.choice([one for one in files if one.startswith("segments/")])
    data = bytearray(files[path])
    data[random.randrange(24)] ^= 1 << random.randrange(8)
    return path, bytes(data)


_FILES: Final[dict[str, Callable[[Files, Random], _Made]]] = {
    "removed": _removed,
    "flipped": _flipped,
    "cut": _cut,
    "longer": _longer,
    "behind": _behind,
    "strange": _strange,
    "renamed": _renamed_note,
    "json": _json_file,
    "header": _header,
}


def _retirement(draft: Draft, random: Random) -> Mutation | None:
    """A field of a retirement, signed again."""
    if not draft.retired:
        return None
    which = random.randrange(len(draft.retired))
    said = json.loads(json.dumps(draft.retired[which]))
    name = random.choice([one for one in said if one not in ("tree", "checkpoint", "certificates")])
    value = said[name]
    others: tuple[Any, ...] = (
        None,
        0,
        -1,
        "",
        "x",
        [],
        [1],
        [1, 2, 3],
        {},
        2**63,
        2**64,
        True,
        ["A", "A"],
    )
    if isinstance(value, list) and value and random.random() < 0.5:
        value = list(value)
        one = value[random.randrange(len(value))]
        value[value.index(one)] = one + 1 if isinstance(one, int) else f"{one}x"
        said[name] = value
    elif random.random() < 0.15:
        del said[name]
    elif random.random() < 0.15:
        said["more"] = 1
    elif isinstance(value, int):
        said[name] = random.choice((value + 1, -1, 2**63, 10**18))
    else:
        said[name] = random.choice(others)
    if name in ("segments", "records") and not isinstance(said.get(name), list):
        return None  # the writer cannot name the file
    retired = (*draft.retired[:which], said, *draft.retired[which + 1 :])
    return Mutation(replace(draft, retired=retired), "retirement", name)


MUTATIONS: Final[tuple[tuple[int, Mutate], ...]] = (
    (5, _text),
    (4, _signature),
    (1, _identity),
    (5, _file),
    (1, _retirement),
)
