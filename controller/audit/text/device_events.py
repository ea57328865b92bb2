"""Sentences for the records about devices, links and people.

Their names are those of the table and its drivers; a test compares them. A record without a
sentence here is quoted by its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from controller.audit.format.records import Record
from controller.audit.format.table_entries import HOST_STALLED, NOT_RECORDED
from controller.audit.text.times import format_time
from controller.procedure.prompts import card_words, counted
from controller.publish import EVENTS
from controller.rules.cards import DECK

Fields: TypeAlias = Mapping[str, Any]
"""The `data` of a record, and `subject`: who or what it is about."""
Saying: TypeAlias = str | Callable[[Fields], str]
"""A sentence with fields in braces, or a function that returns one."""


def sentence(record: Record, found: Fields) -> str | None:
    """The sentence of a record; None if it has none.

    Raises LookupError, TypeError and ValueError if its fields are not those of its name.
    """
    saying = SAYINGS.get((record.kind, _what(found)))
    if saying is None:
        return None
    fields = {"subject": _subject(record, found), **found}
    return saying.format_map(fields) if isinstance(saying, str) else saying(fields)


def _what(found: Fields) -> str:
    what = found.get("what")
    return what if isinstance(what, str) else ""


def _subject(record: Record, found: Fields) -> str:
    """A device as people call it: the station ST-7."""
    if record.kind == "person":
        return str(found.get("name") or "somebody")
    cursor = record.cursor
    serial = found.get("device", "" if cursor is None else cursor.device)
    role = "" if record.kind == "link" and record.by.role != "device" else record.by.name
    return " ".join(part for part in (role, str(serial)) if part) or "a device"


# --- parts of sentences -----------------------------------------------------------------------


def _words(name: object) -> str:
    """An enum name as text: power_on, NOT_NOW."""
    return str(name).replace("_", " ").lower()


def _why(fields: Fields) -> str:
    return f": {fields['why']}" if fields.get("why") else ""


def _counts(fields: Fields) -> str:
    found = fields["counts"]
    counts = found.items() if isinstance(found, dict) else ((one, 1) for one in found)
    return ", ".join(f"{_words(name)} {count}" for name, count in counts)


_FLAGS: Final = (
    "paired",
    "in service",
    "locked",
    "open",
    "jammed",
    "its log is full",
    "faulty",
    "shuffling",
    "with cards inside",
)
"""Names of the bits of a device's state."""


def _stands(fields: Fields) -> str:
    said = [words for bit, words in enumerate(_FLAGS) if fields["state"] >> bit & 1]
    return f"{fields['subject']} says of itself: {', '.join(said) or 'nothing'}"


# --- devices ----------------------------------------------------------------------------------

_IGNORED: Final = {"it came too late": "too late", "it is not open to the seat now": "not lit"}


def _pressed(fields: Fields) -> str:
    said = f"seat {fields['seat']} pressed {_words(fields['button'])}"
    why = fields.get("ignored", "")
    return f"{said}, {_IGNORED.get(why, why)}: nothing changed" if why else said


def _card_seen(fields: Fields) -> str:
    if fields["card"] not in DECK:
        raise ValueError(fields["card"])
    return f"the shoe reads: {card_words(fields['card'])}, {fields['confidence']} %"


def _card_left(fields: Fields) -> str:
    where = " and is discarded" if fields.get("discarded") else ""
    return f"card {fields['pos']} leaves the shoe{where}, seen by nobody"


_DOUBLE_FEED: Final = 2
"""The bit of a card's flags: two cards were pulled together."""


def _unread(fields: Fields) -> str:
    where = ", and is discarded" if fields.get("discarded") else ""
    two = ", pulled together with another one" if fields.get("flags", 0) & _DOUBLE_FEED else ""
    return f"card {fields['pos']} is not read: {_words(fields['why'])}{two}{where}"


def _loaded(fields: Fields) -> str:
    count = fields["count"]
    kind = ", decks of 48" if fields.get("kind") == "spanish_48" else ""
    return "the shoe is loaded" + (f": {counted(count, 'card')}" if count else "") + kind


def _shuffled(fields: Fields) -> str:
    said = [f"the shuffler is done: {counted(fields['count'], 'card')}"]
    said += [f"{fields[name]} {name}" for name in ("missing", "extra") if fields[name]]
    said += [] if fields["rng_ok"] else ["its random numbers failed their test"]
    return ", ".join(said)


def _jam(fields: Fields) -> str:
    code = _words(fields["code"])
    return f"{fields['subject']}: " + ("a jam is cleared" if code == "cleared" else f"jam, {code}")


def _moved(what: str) -> Saying:
    return lambda fields: f"{what} is {'opened' if fields['open'] else 'closed'}"


def _tampered(fields: Fields) -> str:
    what, over = _words(fields["source"]), "" if fields["active"] else ", no longer"
    return f"somebody is at {fields['subject']}{over}: {what}"


def _faulted(fields: Fields) -> str:
    code = _words(fields["code"])
    return f"{fields['subject']}: " + ("no fault is left" if code == "none" else f"fault, {code}")


def _inventory(fields: Fields) -> str:
    said = [f"the shoe is counted: {counted(fields['out'], 'card')} out, {fields['seen']} seen"]
    if fields["extra"]:
        said.append(f"too often: {', '.join(card_words(card) for card in fields['extra'])}")
    said += [
        f"{fields[name]} {words}"
        for name, words in (("foreign", "with a foreign back"), ("missing", "missing"))
        if fields[name]
    ]
    said += [f"{fields['beyond']} more than were loaded"] if fields["beyond"] else []
    return ", ".join(said)


_DEVICE: Final[dict[str, Saying]] = {
    "ButtonPressed": _pressed,
    "ButtonReleased": lambda f: f"seat {f['seat']} lets go of {_words(f['button'])}",
    "ButtonStuck": lambda f: f"seat {f['seat']}: the button {_words(f['button'])} is stuck",
    "CardRetracted": "card {pos} went back into the shoe",
    "CardSeen": _card_seen,
    "CountWrong": "the shuffler counts {got} cards, not {expected}",
    "CoverMoved": _moved("the shoe's cover"),
    "CutCardCame": "the cut card comes out of the shoe",
    "DoorMoved": _moved("the shuffler's door"),
    "Faulted": _faulted,
    "HostPaired": "{subject} is paired with a host",
    "LampBroken": "seat {seat}: a lamp is broken",
    "ReadFailed": _unread,
    "RingFilling": "{subject}: its log is {percent} % full",
    "ShoeCardRead": _card_left,
    "ShoeInventory": _inventory,
    "ShoeJammed": _jam,
    "ShoeLoaded": _loaded,
    "ShuffleDone": _shuffled,
    "ShuffleProgressed": "the shuffler is at {percent} %",
    "ShuffleStarted": lambda f: f"the shuffler begins: {counted(f['decks'], 'deck')}",
    "ShufflerJammed": _jam,
    "Started": lambda f: f"{f['subject']} has started: {_words(f['cause'])}",
    "Tampered": _tampered,
}

# --- links ------------------------------------------------------------------------------------

_STATES: Final = {
    "absent": "is not plugged in",
    "opening": "is looked for",
    "identifying": "is asked who it is",
    "handshaking": "is asked to prove itself",
    "resuming": "is asked where its log stands",
    "ready": "is ready",
    "unkept": "waits: what it tells cannot be kept",
    "lost": "is lost",
    "refused": "is turned away",
}
_ON_THE_WAY: Final = frozenset({"opening", "identifying", "handshaking", "resuming"})
_WITH_WHY: Final = frozenset({"lost", "refused", "unkept"})


def _link(fields: Fields) -> str:
    state = fields["state"]
    return f"{fields['subject']} {_STATES[state]}" + (_why(fields) if state in _WITH_WHY else "")


_BEHIND: Final = "this record ends before events that {subject} was told are stored"


def _taken_up(fields: Fields) -> str:
    two = " and ".join(fields.get("two") or fields["by"])
    behind = fields.get("verdict") == "behind"
    why = f", although {_BEHIND.format_map(fields)}" if behind else ""
    return f"the log of {fields['subject']} is continued at its current position, by {two}{why}"


def _held(fields: Fields) -> str:
    why = "the log of {subject} does not continue the record"
    said = _BEHIND if fields.get("verdict") == "behind" else why
    return f"{said.format_map(fields)}: two people are asked"


def _introduced(fields: Fields) -> str:
    adapter = ", an adapter for a device behind it" if fields.get("gateway") else ""
    return f"{fields['subject']} says who it is: {fields['maker']} {fields['model']}{adapter}"


def _clock(fields: Fields) -> str:
    offset = fields["offset_us"] / 1e6
    there = "ahead of" if offset > 0 else "behind"
    return f"the clock of {fields['subject']} is {abs(offset):,.3f} s {there} the table's"


def _overdue(fields: Fields) -> str:
    sent = "" if fields["sent"] else ", and it was not sent"
    return f"{fields['subject']} has not answered {_words(fields['command'])} in time{sent}"


def _not_recorded(fields: Fields) -> str:
    by_device = ", ".join(f"{name} {count}" for name, count in fields["devices"].items() if name)
    links = f"{_entries(fields['count'])} about links{f' ({by_device})' if by_device else ''}"
    others = f", and {fields['others']} of other kinds" if fields["others"] else ""
    span = f"between {format_time(fields['first'])} and {format_time(fields['last'])}"
    return f"{links}{others} were not recorded, {span}"


def _stalled(fields: Fields) -> str:
    count, total = fields["count"], fields["total_ms"] / 1000
    times = f"{count} times since {format_time(fields['since'])}, " if count > 1 else ""
    longest = f", {fields['longest_ms'] / 1000:.1f} s at most" if count > 1 else ""
    used = f"it used {fields['processor_ms'] / 1000:.1f} s of processor time"
    return f"the controller stood still {times}for {total:.1f} s{longest}; {used}"


def _entries(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"


_LINK: Final[dict[str, Saying]] = {
    "adopted": _taken_up,
    "Adopted": _taken_up,
    "Alert": lambda f: f"alerts in the name of {f['subject']}: {_counts(f)}",
    "AttemptFailed": "{subject} did not come in: {text}",
    "ClockRead": _clock,
    "CommandOverdue": _overdue,
    "CommandRefused": lambda f: f"{f['subject']} refuses {_words(f['command'])}{_why(f)}",
    "Damage": lambda f: f"damaged on the cable of {f['subject']}: {_counts(f)}",
    "Defect": lambda f: f"{f['subject']} says what it must not: {_counts(f)}",
    "DeviceCounts": "{subject} has counted {damaged} damaged frames, {refused} refused",
    "DeviceStands": _stands,
    "Doubled": "more than one device says that it is {subject}",
    "FirmwareChanged": "the software of {subject} has changed",
    HOST_STALLED: _stalled,
    "Held": _held,
    "Informed": lambda f: f"{f['subject']} says what runs on it, since {_words(f['cause'])}",
    "Introduced": _introduced,
    "KeepFailed": lambda f: f"what {f['subject']} tells cannot be kept{_why(f)}",
    NOT_RECORDED: _not_recorded,
    "KeepMended": "what {subject} tells can be kept again",
    "Paused": "{subject} is asked to wait",
    "PortDenied": lambda f: f"the port of {f['subject']} cannot be opened{_why(f)}",
    "PortGone": lambda f: f"the port of {f['subject']} has gone{_why(f)}",
    "PortOpened": "the port of {subject} is open",
    "Restarted": lambda f: f"{f['subject']} has started anew: {_words(f['cause'])}",
    "Resumed": "{subject} goes on from record {head} of its log",
    "SessionBegan": "{subject} has proven who it is",
    "SessionEnded": lambda f: f"the session of {f['subject']} is over: {_words(f['why'])}",
    "StateChanged": _link,
    "StuckBehind": "record {next} of {subject} does not come: its session is given up",
    "Suspicion": lambda f: f"not accepted from {f['subject']}: {_counts(f)}",
    "Swapped": lambda f: (
        f"in the place of {f['subject']} is another device, {f['found']['serial']}"
    ),
    "WentOn": "{subject} goes on",
}

# --- people -----------------------------------------------------------------------------------

_LEFT: Final = {
    "asked": "signs out",
    "closed": "is signed out: the table closes",
    "disabled": "is signed out: the badge was disabled",
}
_PAGES: Final = {
    "review": "{subject} {of} to look",
    "review list": "{subject} looked at the list of rounds: {of}",
    "review problems": "{subject} looked at problems: {of}",
    "review records": "{subject} looked at records {of}",
    "review report": "{subject} looked at pace and errors: {of}",
    "review live": "{subject} looked live at {of}",
    "review replay": "{subject} looked at the replay of {of}",
    "review verify": "{subject} verified {of}",
    "review proof": "{subject} fetched the proof of {of}",
    "review export csv": "{subject} exported {of} as CSV",
    "review export jsonl": "{subject} exported {of} as JSON Lines",
    "export": "{subject} asked for a sealed case of {of}",
    "exported": "{subject} exported {of} as a sealed case",
}


def _signed_in(fields: Fields) -> str:
    place = f" in the place of {fields['relieved']}" if fields.get("relieved") else ""
    return f"{fields['subject']} signs in as {fields['role']}{place}"


def _signed_for(fields: Fields) -> str:
    act, about = fields["act"], str(fields.get("about", ""))
    second = " as second person" if fields.get("second") else ""
    if act == "adopted":
        serial = about.partition(":")[0]
        return f"{fields['subject']} signs{second}: the log of {serial} is taken up"
    more = f", {about}" if about else ""
    return f"{fields['subject']} signs{second}: {EVENTS.get(act, act)}{more}"


def _turned(fields: Fields) -> str:
    wanted = EVENTS.get(fields["wanted"], fields["wanted"])
    return f"{fields['subject']} is refused, {wanted}: {fields['why']}"


def _looked(fields: Fields) -> str:
    said = _PAGES.get(fields["page"], "{subject} looked at {of}").format_map(fields)
    more = [f"as {fields['out']}" if fields.get("out") else ""]
    more += [f"seal {fields['seal']}" if fields.get("seal") else ""]
    more += [f"reason: {fields['reason']}" if fields.get("reason") else ""]
    return ", ".join([said, *(one for one in more if one)])


_PERSON: Final[dict[str, Saying]] = {
    "signed in": _signed_in,
    "signed out": lambda f: f"{f['subject']} {_LEFT[f['why']]}",
    "authorised": _signed_for,
    "refused": _turned,
    "turned away": "no badge is looked at for {wait} s, after wrong PINs",
    "looked": _looked,
}

SAYINGS: Final[Mapping[tuple[str, str], Saying]] = {
    (kind, what): saying
    for kind, sayings in (("device", _DEVICE), ("link", _LINK), ("person", _PERSON))
    for what, saying in sayings.items()
}

# --- what is quiet ----------------------------------------------------------------------------

KEEPING: Final = frozenset({"snapshot", "certificate", "checkpoint", "witnessed"})
"""Kinds of records that only serve the record itself."""
_QUIET: Final = frozenset(
    {
        ("device", "ButtonReleased"),
        ("device", "ShuffleProgressed"),
        ("link", "Adopted"),  # the link record of the two people says it
        ("link", "ClockRead"),
        ("link", "Damage"),
        ("link", "DeviceCounts"),
        ("link", "DeviceStands"),
        ("link", "Informed"),
        ("link", "Introduced"),
        ("link", "Paused"),
        ("link", "PortGone"),  # the record of the lost device has the reason
        ("link", "PortOpened"),
        ("link", "Resumed"),
        ("link", "SessionBegan"),
        ("link", "SessionEnded"),
        ("link", "WentOn"),
    }
)


def is_quiet(record: Record, found: Fields) -> bool:
    """Returns whether the record is about running the table, and not about the round."""
    what = _what(found)
    on_the_way = what == "StateChanged" and found.get("state") in _ON_THE_WAY
    return record.kind in KEEPING or (record.kind, what) in _QUIET or on_the_way


def is_access(record: Record, found: Fields) -> bool:
    """Returns whether a user accessed the record."""
    return record.kind == "person" and _what(found) == "looked"
