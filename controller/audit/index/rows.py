"""The rows of records that follow each other, as they are gathered for the index."""

from __future__ import annotations

from collections.abc import Iterable

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
    IndexTable,
)
from controller.rules.cards import DECK, Card
from controller.rules.money import Amount


class Words(dict[str, int]):
    """The number of each word; a new one gets the next."""

    def __init__(self, known: Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(known)
        self._new: list[tuple[int, str]] = []
        if not self:
            self[""]  # gets the number 0: no word at all

    def __missing__(self, word: str) -> int:
        number = len(self)
        self[word] = number
        self._new.append((number, word))
        return number

    def kept(self) -> list[tuple[int, str]]:
        """The new ones: whoever asks keeps them."""
        new, self._new = self._new, []
        return new


class Rows:
    """What there is to be put down of a record has a method; `end` comes last of each record."""

    def __init__(self, words: Words, standing: OpenState) -> None:
        self.words = words
        self.spans = Spans(standing)
        self._records: list[Row] = []
        self._seats: list[Row] = []
        self._cards: list[Row] = []
        self._amounts: list[Row] = []
        self._bets: list[Row] = []
        self._irregularities: list[Row] = []
        self._problems: list[Row] = []
        self._people: list[Row] = []
        # Of the record at hand.
        self._nth = 0
        self._problem = ""
        self._seat_numbers: set[int] = set()
        self._faces: set[Row] = set()

    def lists(self) -> tuple[tuple[IndexTable, list[Row]], ...]:
        """What is to be inserted into which table."""
        return (
            (RECORDS, self._records),
            (SEATS, self._seats),
            (CARDS, self._cards),
            (AMOUNTS, self._amounts),
            (BETS, self._bets),
            (IRREGULARITIES, self._irregularities),
            (PROBLEMS, self._problems),
            (PEOPLE, self._people),
        )

    def end(self, row: Row) -> None:
        """The record itself, once all that is in it is put down."""
        seq = row[0]
        self._records.append(row)
        if self._seat_numbers:
            self._seats += [(seat, seq) for seat in self._seat_numbers]
            self._seat_numbers.clear()
        if self._faces:
            self._cards += self._faces
            self._faces.clear()
        if self._problem:
            self._problems.append((seq, self.words[self._problem]))
            self._problem = ""
        self._nth = 0

    def seat(self, seat: int) -> None:
        """The record is about that seat."""
        if seat > 0:
            self._seat_numbers.add(seat)

    def card(self, seq: int, card: Card, seat: int, how: str) -> None:
        """It lies face up."""
        if 0 <= card < len(DECK):
            self._faces.add((card, seq, seat, self.words[how]))
            self.seat(seat)

    def amount(self, seq: int, what: str, seat: int, bet: str, amount: Amount) -> None:
        w = self.words
        self._amounts.append((seq, self._next(), w[what], seat, w[bet], amount))
        self.spans.amount(amount)
        self.seat(seat)

    def settled(self, seq: int, numbers: Row, bet: str, outcome: str, why: str) -> None:
        """`numbers`: round, seat, hand, stake and what was returned."""
        w = self.words
        round_, seat, hand, stake, returned = numbers
        words = (w[bet], w[outcome], w[why])
        self._bets.append(
            (seq, self._next(), round_, seat, hand, *words[:2], stake, returned, words[2])
        )

    def irregularity(self, seq: int, what: str, seat: int) -> None:
        """It was found; a ruling about it is a row of its own."""
        w = self.words
        self._irregularities.append((w[what], seq, self._next(), seat, 0, 0, 0))
        self.seat(seat)
        self.problem(what)
        self.spans.irregular()

    def ruled(self, seq: int, what: str, way: str, by: str, second: str) -> None:
        w = self.words
        row = (w[what], seq, self._next(), 0, w[way], w[by], w[second])
        self._irregularities.append(row)

    def problem(self, what: str) -> None:
        """The first one of a record is the one that is listed."""
        self._problem = self._problem or what

    def person(self, seq: int, name: str, part: str) -> None:
        self._people.append((self.words[name], seq, self.words[part]))

    def _next(self) -> int:
        """The number of a row within its record."""
        self._nth += 1
        return self._nth
