"""Collects the rows of consecutive records for the index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.audit.index.open_state import OpenState, Row, Spans
from controller.audit.index.schema import (
    AMOUNTS,
    BETS,
    CARDS,
    IRREGULARITIES,
    PEOPLE,
    PROBLEMS,
    RECORDS,
    SEATS,
)
from controller.rules.cards import DECK, Card
from controller.rules.money import Amount


class Words(dict[str, int]):
    """Numbers of words; an unknown word gets the next number."""

    def __init__(self, known: Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(known)
        self._new: list[tuple[int, str]] = []
        if not self:
            self[""]  # gets number 0, which means no word

    def __missing__(self, word: str) -> int:
        number = len(self)
        self[word] = number
        self._new.append((number, word))
        return number

    def kept(self) -> list[tuple[int, str]]:
        """Return the new words, and forget that they are new."""
        new, self._new = self._new, []
        return new


INSERTED: Final = (RECORDS, SEATS, CARDS, AMOUNTS, BETS, IRREGULARITIES, PROBLEMS, PEOPLE)


class Rows:
    """Rows to insert. `end` must be called last for each record."""

    def __init__(self, words: Words, state: OpenState) -> None:
        self.words = words
        self.spans = Spans(state)
        self.inserted: dict[str, list[Row]] = {table.name: [] for table in INSERTED}
        """Rows by the name of their table."""
        # Of the current record:
        self._nth = 0
        self._problem = ""
        self._seat_numbers: set[int] = set()
        self._faces: set[Row] = set()

    def end(self, row: Row) -> None:
        """Add the record itself."""
        seq = row[0]
        self.inserted["records"].append(row)
        if self._seat_numbers:
            self.inserted["seats"] += [(seat, seq) for seat in self._seat_numbers]
            self._seat_numbers.clear()
        if self._faces:
            self.inserted["cards"] += self._faces
            self._faces.clear()
        if self._problem:
            self.inserted["problems"].append((seq, self.words[self._problem]))
            self._problem = ""
        self._nth = 0

    def seat(self, seat: int) -> None:
        """The record is about this seat."""
        if seat > 0:
            self._seat_numbers.add(seat)

    def card(self, seq: int, card: Card, seat: int, how: str) -> None:
        """A card lies face up."""
        if 0 <= card < len(DECK):
            self._faces.add((card, seq, seat, self.words[how]))
            self.seat(seat)

    def amount(self, seq: int, what: str, seat: int, bet: str, amount: Amount) -> None:
        w = self.words
        self.inserted["amounts"].append((seq, self._next(), w[what], seat, w[bet], amount))
        self.spans.amount(amount)
        self.seat(seat)

    def settled(self, seq: int, numbers: Row, bet: str, outcome: str, why: str) -> None:
        """Argument `numbers` has round, seat, hand, stake and returned amount."""
        w = self.words
        round_, seat, hand, stake, returned = numbers
        words = (w[bet], w[outcome], w[why])
        self.inserted["bets"].append(
            (seq, self._next(), round_, seat, hand, *words[:2], stake, returned, words[2])
        )

    def irregularity(self, seq: int, what: str, seat: int) -> None:
        """An irregularity was found; a ruling about it gets its own row."""
        w = self.words
        self.inserted["irregularities"].append((w[what], seq, self._next(), seat, 0, 0, 0))
        self.seat(seat)
        self.problem(what)
        self.spans.irregular()

    def ruled(self, seq: int, what: str, way: str, by: str, second: str) -> None:
        w = self.words
        row = (w[what], seq, self._next(), 0, w[way], w[by], w[second])
        self.inserted["irregularities"].append(row)

    def problem(self, what: str) -> None:
        """Only the first problem of a record is listed."""
        self._problem = self._problem or what

    def person(self, seq: int, name: str, part: str) -> None:
        self.inserted["people"].append((self.words[name], seq, self.words[part]))

    def _next(self) -> int:
        """The number of a row within its record."""
        self._nth += 1
        return self._nth
