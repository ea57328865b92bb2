"""Script files that cannot be used, and what must be said of each."""

from __future__ import annotations

from typing import Any

from tests.support.sim.a_round import ROUND, action, changed

UNUSABLE: tuple[tuple[str, bytes | dict[str, Any], str], ...] = (
    ("empty", b"", "FILE: not JSON: Input data was truncated; allowed: JSON in UTF-8"),
    ("list", b"[]", 'FILE: not a script file; allowed: {"schema": 1, "rounds": [...]}'),
    ("not-utf8", b'{"schema": "\xff"}', "FILE: not UTF-8; allowed: JSON in UTF-8"),
    ("nan", b'{"schema": 1, "rounds": NaN}', "FILE: not JSON: JSON is malformed"),
    ("deep", b"[" * 100_000, "FILE: not JSON: maximum recursion depth exceeded"),
    ("half-a-character", b'["\\ud800"]', "FILE: not JSON: "),
    ("unknown", b'{"schema": 1, "rounds": [], "x": 1}', "FILE: x: unknown field; allowed: schema"),
    ("no-schema", b'{"rounds": []}', "FILE: schema: null is not known; allowed: 1"),
    ("schema-2", b'{"schema": 2, "rounds": []}', "FILE: schema: 2 is not known; allowed: 1"),
    ("schema-true", b'{"schema": true, "rounds": []}', "FILE: schema: true is not known"),
    ("schema-1.0", b'{"schema": 1.0, "rounds": []}', "FILE: schema: 1.0 is not known"),
    ("rounds", b'{"schema": 1, "rounds": {}}', "FILE: rounds: not a list"),
    ("twice-above", b'{"schema": 1, "schema": 1, "rounds": []}', "FILE: schema: is given twice"),
    (
        "twice-below",
        b'{"schema": 1, "rounds": [{"id": "A", "seats": [{"seat": 1, "seat": 2}]}]}',
        "FILE: round A: seats[0].seat: is given twice; allowed: once",
    ),
    ("round", b'{"schema": 1, "rounds": [[]]}', "FILE: round #1: a list is not valid here"),
    ("no-id", changed(id=None), "FILE: round #1: id: null is not valid here; allowed: text"),
    ("id-number", changed(id=5), "FILE: round #1: id: a whole number is not valid here"),
    (
        "no-shoe",
        {key: value for key, value in ROUND.items() if key != "shoe"},
        "FILE: round R-1: shoe: missing",
    ),
    (
        "game",
        changed(game="poker"),
        "round R-1: game: Invalid enum value 'poker'; allowed: maxtime, sf21x, classic, mega",
    ),
    ("field", changed(foo=1), "FILE: round R-1: foo: unknown field; allowed: id, game, seats"),
    ("null", changed(actions=None), "round R-1: actions: null is not valid here; allowed: a list"),
    (
        "first",
        changed(first_round_of_shuffle=1),
        "round R-1: first_round_of_shuffle: a whole number is not valid here; allowed: true or f",
    ),
    ("no-seats", changed(seats=[]), "FILE: round R-1: seats: no seat plays"),
    (
        "seat-0",
        changed(seats=[{"seat": 0, "bets": {}}]),
        "round R-1: seats[0].seat: there is no seat 0; allowed: 1 to 7",
    ),
    (
        "seat-8",
        changed(seats=[{"seat": 8, "bets": {}}]),
        "round R-1: seats[0].seat: there is no seat 8; allowed: 1 to 7",
    ),
    (
        "seat-twice",
        changed(seats=[{"seat": 2, "bets": {}}, {"seat": 2, "bets": {}}]),
        "round R-1: seats[1].seat: seat 2 is given twice",
    ),
    (
        "seat-true",
        changed(seats=[{"seat": True, "bets": {}}]),
        "round R-1: seats[0].seat: true or false is not valid here; allowed: a whole number",
    ),
    (
        "bet",
        changed(seats=[{"seat": 1, "bets": {"mian": 5}}]),
        "round R-1: seats[0].bets.mian: unknown field; allowed: main, diamond, buster, toke_main",
    ),
    *(
        (
            f"amount-{amount}",
            changed(seats=[{"seat": 1, "bets": {"main": 1000, "buster": amount}}]),
            "round R-1: seats[0].bets.buster: " + what,
        )
        for amount, what in (
            (True, "true or false is not valid here; allowed: a whole number"),
            (10.0, "a number with a point is not valid here"),
            ("10", "text is not valid here"),
            (None, "null is not valid here"),
        )
    ),
    ("card", changed(shoe=["10C"]), "round R-1: shoe[0]: '10C' is not a card; allowed: a rank"),
    ("card-number", changed(shoe=[5]), "round R-1: shoe[0]: a whole number is not valid here"),
    (
        "copies",
        changed(shoe=["TC"] * 7),
        "round R-1: shoe: TC is in it 7 times; allowed: 6 times at most: the game has 6 decks",
    ),
    (
        "do",
        changed(actions=[{"phase": "play", "seat": 1, "hand": 0, "do": "insure"}]),
        "round R-1: actions[0].do: insure is not done in play; allowed: hit, stand, double",
    ),
    (
        "do-unknown",
        changed(actions=[action("dance")]),
        "round R-1: actions[0].do: Invalid enum value 'dance'; allowed: insure, decline",
    ),
    ("no-hand", changed(actions=[action("hit", hand=None)]), "round R-1: actions[0].hand: missing"),
    (
        "insured-hand",
        changed(actions=[action("decline") | {"hand": 0}]),
        "round R-1: actions[0].hand: insurance is a seat's, not a hand's",
    ),
    (
        "no-amount",
        changed(actions=[action("insure")]),
        "round R-1: actions[0].amount: missing",
    ),
    (
        "expect",
        changed(expect={"ok": True}),
        "round R-1: expect.ok: unknown field; allowed: dealer_cards, hands, side_bets",
    ),
    (
        "expect-hand",
        changed(expect={"hands": [{"colour": 1}]}),
        "round R-1: expect.hands[0].colour: unknown field; allowed: seat, hand, cards",
    ),
    (
        "expect-net",
        changed(expect={"seat_net": {"1": 0, "2": 0.5}}),
        "round R-1: expect.seat_net.2: a number with a point is not valid here",
    ),
    (
        "expect-card",
        changed(expect={"hands": [{"cards": ["1C"]}]}),
        "round R-1: expect.hands[0].cards[0]: '1C' is not a card",
    ),
    ("config-list", changed(config=[]), "round R-1: config: a list is not valid here"),
    ("config-key", changed(config={"seats": 3}), "round R-1: config: seats: is no option"),
    (
        "config-value",
        changed(config={"decks": "six"}),
        "round R-1: config: decks: 'six' is not valid here; allowed: 1, 2, 4, 6 or 8",
    ),
    ("config-true", changed(config={"decks": True}), "round R-1: config: decks: true is not valid"),
    (
        "config-impossible",
        changed(config={"blackjack.ten_up": "pay_first", "blackjack.paid": "at_settlement"}),
        "round R-1: config: blackjack.",
    ),
    (
        "config-deep",
        b'{"schema": 1, "rounds": [{"id": "A", "game": "classic", "shoe": [], "seats": '
        b'[{"seat": 1, "bets": {}}], "config": ' + b'{"decks": ' * 500 + b"1" + b"}" * 502,
        "FILE: ",
    ),
)
