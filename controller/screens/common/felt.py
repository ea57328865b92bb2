"""A felt as a value, and its drawing as SVG: face-up cards, bets, whose turn it is.

The value is made of the procedure's state, which contains no face-down card, and of nothing of the
shoe.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from controller.procedure.model.felt import expected
from controller.procedure.model.state import Place, Seat, State, Step
from controller.procedure.prompts import PromptTerms
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand, is_blackjack

DOWN: Final = "--"
"""The name of a face-down card."""
_TURNS: Final = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.HAND_CARD)
_ASKS: Final = (Step.INSURANCE, Step.INSURANCE_CONFIRM)
_BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster", "insurance")


class FeltHand(Struct, frozen=True):
    cards: tuple[str, ...]
    total: str
    wager: str
    tags: tuple[str, ...]
    turn: bool
    next: bool = False
    """The next card goes to it."""
    due: bool = False
    """It is paid, taken or given back now."""
    words: str = ""


class FeltSeat(Struct, frozen=True):
    number: int
    name: str
    plays: bool = False
    bets: tuple[tuple[str, str], ...] = ()
    """Bets and amounts, except the main wager of a hand."""
    hands: tuple[FeltHand, ...] = ()
    marked: bool = False
    """Something is asked of it."""
    words: str = ""


class Felt(Struct, frozen=True):
    name: str
    """Of the dealer's place."""
    dealer: tuple[str, ...]
    """The last may lie face down."""
    dealer_total: str
    seats: tuple[FeltSeat, ...]
    spare: str
    """The card beside the shoe; empty if absent."""
    beside: str
    """The name of that place."""
    dealer_next: bool = False
    notes: tuple[tuple[str, str], ...] = ()
    """Lines in the middle, with their kind: held, due."""
    words: tuple[str, ...] = ()
    """The same as text, for screen readers."""


def felt_of(
    s: State,
    seats: int,
    terms: PromptTerms,
    *,
    guides: bool = False,
    notes: tuple[tuple[str, str], ...] = (),
    more: tuple[str, ...] = (),
) -> Felt:
    """A state as a felt of at least `seats` seats, in the words of `terms`. `guides`: marks what
    the dealer does next, too. `more`: what the notes say, for screen readers."""
    texts, place = terms.texts, expected(s) if guides else None
    shown = _ShownState(s, terms, place, guides)
    by_number = {seat.number: seat for seat in s.seats}
    numbers = range(1, max(seats, *by_number, 0) + 1)
    cards = (*names_of(s.dealer), DOWN) if s.hole else names_of(s.dealer)
    total = shown.total(s.dealer_total, s.dealer_soft, s.dealer)
    spare = ""
    if s.spare is not None:
        spare = NAMES[s.spare.card] if s.spare.card >= 0 else DOWN
    name, beside = texts("console.felt.dealer"), texts("console.felt.beside")
    places = tuple(shown.seat(number, by_number.get(number)) for number in numbers)
    said = [seat.words for seat in places if seat.plays]
    if cards:
        words = (shown.listed(cards), total if guides else "")
        said.insert(0, f"{name}: {', '.join(filter(None, words))}")
    if spare:
        said.append(f"{beside}: {shown.listed((spare,))}")
    return Felt(
        name,
        cards,
        total,
        places,
        spare,
        beside,
        place is not None and place.kind in ("up", "hole", "dealer"),
        notes,
        (*said, *more) or (texts("console.felt.nothing"),),
    )


def names_of(cards: tuple[Card, ...]) -> tuple[str, ...]:
    return tuple(NAMES[card] for card in cards)


class _ShownState(Struct, frozen=True):
    """A state, and the words in which it is shown."""

    s: State
    terms: PromptTerms
    place: Place | None
    """Where the next card goes, if that is shown."""
    guides: bool

    def seat(self, number: int, seat: Seat | None) -> FeltSeat:
        s, t = self.s, self.terms
        name = t.seat(number)
        if seat is None:
            return FeltSeat(number, name)
        hands = tuple(self._hand(turn, one) for turn, one in hands_at(s, seat))
        bets = tuple((t.bet(bet), t.amount(amount)) for bet, amount in bets_at(s, seat))
        here = s.asked < len(s.seats) and s.seats[s.asked].number == number
        marked = here and (s.step in _ASKS or (s.step is Step.NATURALS and not self.guides))
        said = [hand.words for hand in hands] + [f"{bet} {amount}" for bet, amount in bets]
        if self.guides:
            said += [t.texts("console.felt.asked")] if marked else []
            due = bool(s.due) and s.due[0].turn < 0 and s.due[0].seat == number
            marked |= s.step is Step.PAYING and due
            marked |= any(hand.turn or hand.next for hand in hands)
        words = "; ".join(said) or ("" if self.guides else "nothing")
        return FeltSeat(number, name, True, bets, hands, marked, f"{name}: {words}")

    def _hand(self, turn: int, hand: Hand) -> FeltHand:
        s, t = self.s, self.terms
        tags = tuple(t.texts(f"console.tag.{tag}") for tag in tags_of(hand))
        total = self.total(hand.total, hand.soft, hand.cards)
        turns = s.step in _TURNS or (s.step is Step.NATURALS and self.guides)
        mine = turns and turn == s.turn
        place = self.place
        comes = place is not None and place.kind == "hand" and place.turn == turn
        due = self.guides and s.step is Step.PAYING and bool(s.due) and s.due[0].turn == turn
        cards, wager = names_of(hand.cards), t.amount(hand.wager)
        said = [self.listed(cards), total, t.texts("console.felt.wager", amount=wager), *tags]
        said += [t.texts("console.felt.turn")] if mine else []
        said += [t.texts("console.felt.next")] if comes else []
        return FeltHand(cards, total, wager, tags, mine, comes, due, ", ".join(filter(None, said)))

    def listed(self, names: tuple[str, ...]) -> str:
        t = self.terms
        down, none = t.texts("console.felt.down"), t.texts("console.felt.no_cards")
        return ", ".join(down if one == DOWN else t.card(NAMES.index(one)) for one in names) or none

    def total(self, total: int, soft: bool, cards: tuple[Card, ...]) -> str:
        if not cards:
            return ""
        return (
            self.terms.texts("console.term.soft", total=total)
            if soft and total < 21
            else str(total)
        )


def hands_at(s: State, seat: Seat) -> list[tuple[int, Hand]]:
    """The hands on the felt, with their turn: in play, or tucked under the Buster wager."""
    hands = [(turn, hand) for turn, hand in enumerate(s.hands) if hand.seat == seat.number]
    return [one for one in hands if not one[1].out or (one[1].busted and seat.amount("buster") > 0)]


def bets_at(s: State, seat: Seat) -> list[tuple[str, int]]:
    """The bets that lie there, except the main wager of a hand."""
    dealt = any(hand.seat == seat.number for hand in s.hands)
    bets = [(bet, seat.amount(bet)) for bet in _BETS if not (bet == "main" and dealt)]
    return [one for one in bets if one[1]]


def tags_of(hand: Hand) -> tuple[str, ...]:
    tags = {
        "blackjack": len(hand.cards) == 2 and not hand.split and is_blackjack(*hand.cards),
        "bust": hand.busted,
        "doubled": hand.doubles > 0,
        "tucked": hand.out,
    }
    return tuple(tag for tag, holds in tags.items() if holds)


Side: TypeAlias = Literal["players", "dealer"]

WIDTH, HEIGHT = 1120, 600
CARD_WIDTH, CARD_HEIGHT = 46, 64
CLOTH: Final = (
    f"M 24 8 H {WIDTH - 24} V 300 C {WIDTH - 40} 500 {WIDTH - 260} {HEIGHT - 8} {WIDTH // 2} "
    f"{HEIGHT - 8} C 260 {HEIGHT - 8} 40 500 24 300 Z"
)
_SEAT_Y: Final = (232, 292, 328, 340, 328, 292, 232)
"""The y of seven seats, from one end to the other."""
_TURNED_Y: Final = 420
"""The sum of a seat's y seen from either side."""
_MARGIN: Final = 140
_GLYPHS: Final = {"C": "\u2663", "D": "\u2666", "H": "\u2665", "S": "\u2660"}
_PLAIN: Final = "\ufe0e"
"""Variation selector: the suit as a character, not as an emoji."""
_RANKS: Final = {"T": "10"}


def where(number: int, seats: int, side: Side = "players") -> tuple[int, int]:
    """Returns where a seat begins: seat 1 is at the right with the dealer above, at the left with
    the dealer below."""
    share = 0.5 if seats == 1 else (seats - number) / (seats - 1)
    at = share * (len(_SEAT_Y) - 1)
    low = min(int(at), len(_SEAT_Y) - 2)
    y = _SEAT_Y[low] + (at - low) * (_SEAT_Y[low + 1] - _SEAT_Y[low])
    x = _MARGIN + share * (WIDTH - 2 * _MARGIN)
    if side == "dealer":
        x, y = WIDTH - x, _TURNED_Y - y
    return round(x), round(y)


def card(name: str, x: int, y: int) -> str:
    """One card, or the back of a face-down card."""
    box = f'x="{x}" y="{y}" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="5"'
    if name == DOWN:
        inner = (
            f'<rect class="weave" x="{x + 5}" y="{y + 5}" width="{CARD_WIDTH - 10}" '
            f'height="{CARD_HEIGHT - 10}" rx="3"/>'
        )
        return f'<rect class="card back" {box}/>{inner}'
    rank, suit = _RANKS.get(name[0], name[0]), name[1]
    glyph = _GLYPHS[suit] + _PLAIN
    return (
        f'<rect class="card" {box}/>'
        f'<text class="rank suit-{suit}" x="{x + 4}" y="{y + 19}">{rank}</text>'
        f'<text class="pip suit-{suit}" x="{x + 4}" y="{y + 36}">{glyph}</text>'
        f'<text class="large suit-{suit}" x="{x + CARD_WIDTH - 5}" y="{y + 57}">{glyph}</text>'
    )


class DrawingStyle(Struct, frozen=True):
    """Where the parts of a felt stand in its picture, and their classes."""

    side: Side
    opening: str
    cloth: str
    beside: tuple[int, int]
    spot: tuple[int, int]
    """Of an empty place: the y and the radius."""
    idle: tuple[int, str]
    """Of its name: the y and the class."""
    name_y: int
    marked: str
    bet: str
    frame: tuple[int, int, int, int]
    """Around a hand: left, above, more height, radius."""
    offset: int
    """From a hand's y to its cards."""
    split: tuple[int, int]
    """Of several hands at a seat: the shift to the left, and from one to the next."""
    below: tuple[int, int]
    """From the cards to the first line, and from line to line."""
    next_to: tuple[int, int]
    """The same beside the cards of a split."""


_TURNED: Final = f'transform="rotate(180 {WIDTH // 2} {HEIGHT // 2})"'
_PLAYERS: Final = DrawingStyle(
    side="players",
    opening=f'<svg class="felt" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="felt-0" '
    'xmlns="http://www.w3.org/2000/svg"><title id="felt-0">',
    cloth=f'<path class="cloth" d="{CLOTH}"/>',
    beside=(WIDTH - 150, 60),
    spot=(34, 40),
    idle=(-10, "place"),
    name_y=-10,
    marked="place asked",
    bet="bet",
    frame=(6, 5, 10, 8),
    offset=0,
    split=(0, 62),
    below=(18, 19),
    next_to=(8, 18),
)
_DEALERS: Final = DrawingStyle(
    side="dealer",
    opening=f'<svg id="felt-picture" class="felt" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    'aria-labelledby="felt-title"><title id="felt-title">',
    cloth=f'<path class="cloth" d="{CLOTH}" {_TURNED}/><path class="seam" '
    f'd="M 60 208 C 250 162 {WIDTH - 250} 162 {WIDTH - 60} 208" {_TURNED}/>',
    beside=(160, 490),
    spot=(38, 38),
    idle=(43, "place idle"),
    name_y=-12,
    marked="place marked",
    bet="bet beside",
    frame=(7, 3, 8, 9),
    offset=1,
    split=(30, 64),
    below=(22, 20),
    next_to=(10, 19),
)


class FeltDrawing:
    """The picture before the players: the dealer above, all cards of one size and upright."""

    style = _PLAYERS

    def picture(self, felt: Felt) -> str:
        body = "".join((*self._dealer(felt), *self._middle(felt), *self._seats(felt)))
        words = escape(". ".join(felt.words))
        return f"{self.style.opening}{words}</title>{self.style.cloth}{body}</svg>"

    def _dealer(self, felt: Felt) -> Iterator[str]:
        x, y = WIDTH // 2, 40
        yield self._text(x, y - 10, felt.name, "place")
        yield self._cards(felt.dealer, x, y)
        yield self._text(x, y + CARD_HEIGHT + 18, felt.dealer_total, "total")

    def _middle(self, felt: Felt) -> Iterator[str]:
        if felt.spare:
            x, y = self.style.beside
            yield self._text(x, y, felt.beside, "place")
            yield self._cards((felt.spare,), x, y + 10)
        for row, (words, kind) in enumerate(felt.notes):
            yield self._text(WIDTH // 2, 152 + 22 * row, words, kind)

    def _seats(self, felt: Felt) -> Iterator[str]:
        (down, radius), (name_y, kind) = self.style.spot, self.style.idle
        for seat in felt.seats:
            x, y = where(seat.number, len(felt.seats), self.style.side)
            if seat.plays:
                yield self._name(seat, x, y)
                yield from self._seat(seat, x, y)
            else:
                yield f'<circle class="spot" cx="{x}" cy="{y + down}" r="{radius}"/>'
                yield self._text(x, y + name_y, seat.name, kind)

    def _name(self, seat: FeltSeat, x: int, y: int) -> str:
        kind = self.style.marked if seat.marked else "place"
        return self._text(x, y + self.style.name_y, seat.name, kind)

    def _seat(self, seat: FeltSeat, x: int, y: int) -> Iterator[str]:
        small = len(seat.hands) > 1
        left, height = self.style.split if small else (0, 0)
        for row, hand in enumerate(seat.hands):
            yield from self._hand(hand, x - left, y + row * height, small=small)
        below = self._bets_y(seat, y)
        for row, (name, amount) in enumerate(seat.bets):
            yield self._text(x, below + 18 * row, f"{name} {amount}", self.style.bet)

    def _hand(self, hand: FeltHand, x: int, y: int, *, small: bool) -> Iterator[str]:
        width, height = self._size(hand, small=small)
        if hand.turn or hand.next or hand.due:
            kind = "turn" if hand.turn or hand.next else "due-now"
            left, above, more, radius = self.style.frame
            yield (
                f'<rect class="{kind}" x="{x - width // 2 - left}" y="{y - above}" '
                f'width="{width + 2 * left}" height="{height + more}" rx="{radius}"/>'
            )
        yield self._cards(hand.cards, x, y + self.style.offset, small=small, comes=hand.next)
        gap, step = self.style.next_to if small else self.style.below
        for row, (words, kind) in enumerate(self._lines(hand)):
            if small:
                yield self._text(x + width // 2 + gap, y + 20 + row * step, words, f"{kind} side")
            else:
                yield self._text(x, y + height + gap + row * step, words, kind)

    def _bets_y(self, seat: FeltSeat, y: int) -> int:
        hands = len(seat.hands)
        return y + 16 + (hands * self.style.split[1] + 34 if hands > 1 else hands * 110)

    def _lines(self, hand: FeltHand) -> list[tuple[str, str]]:
        """The lines of a hand, with their class."""
        return [(" ".join(filter(None, (hand.total, *hand.tags))), "total"), (hand.wager, "bet")]

    def _size(self, hand: FeltHand, *, small: bool) -> tuple[int, int]:
        return CARD_WIDTH + _STEP * max(len(hand.cards) - 1, 0), CARD_HEIGHT

    def _cards(
        self, names: tuple[str, ...], x: int, y: int, *, small: bool = False, comes: bool = False
    ) -> str:
        count = len(names)
        step = CARD_WIDTH + 4 if DOWN in names or count <= 2 else _STEP
        left = x - (CARD_WIDTH + step * max(count - 1, 0)) // 2 if count else x
        return "".join(card(name, left + at * step, y) for at, name in enumerate(names))

    def _text(self, x: int, y: int, words: str, kind: str) -> str:
        return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>' if words else ""


_STEP: Final = 21
"""From one overlapping card to the next."""


class DealersDrawing(FeltDrawing):
    """The picture before the dealer: the dealer below, seat 1 at the left, large cards, the place
    of the next card."""

    style = _DEALERS

    def _dealer(self, felt: Felt) -> Iterator[str]:
        x, y = WIDTH // 2, 462
        yield self._text(x, y - 12, felt.name, "place")
        yield _scaled(felt.dealer, x, y, _LARGE, comes=felt.dealer_next)
        if felt.dealer_total:
            width, _ = _scaled_size(felt.dealer, _LARGE, comes=felt.dealer_next)
            yield self._text(x + width // 2 + 18, y + 58, felt.dealer_total, "total big side")

    def _name(self, seat: FeltSeat, x: int, y: int) -> str:
        flag = f'<rect class="flag" x="{x - 50}" y="{y - 30}" width="100" height="24" rx="12"/>'
        return (flag if seat.marked else "") + super()._name(seat, x, y)

    def _bets_y(self, seat: FeltSeat, y: int) -> int:
        if len(seat.hands) > 1:
            return y + len(seat.hands) * self.style.split[1] + 12
        if not seat.hands:
            return y + 26
        hand = seat.hands[0]
        gap, step = self.style.below
        return y + self._size(hand, small=False)[1] + gap + step * len(self._lines(hand))

    def _lines(self, hand: FeltHand) -> list[tuple[str, str]]:
        lines = ((hand.total, "total"), (" ".join(hand.tags), "total"), (hand.wager, "bet"))
        return [one for one in lines if one[0]]

    def _size(self, hand: FeltHand, *, small: bool) -> tuple[int, int]:
        return _scaled_size(hand.cards, _SMALL if small else _USUAL, comes=hand.next)

    def _cards(
        self, names: tuple[str, ...], x: int, y: int, *, small: bool = False, comes: bool = False
    ) -> str:
        return _scaled(names, x, y, _SMALL if small else _USUAL, comes=comes)

    def _text(self, x: int, y: int, words: str, kind: str) -> str:
        """Squeezed if it would be wider than a seat."""
        usual = len(words) * _LETTER.get(kind, 0)
        if usual * _LARGER <= _LINE_WIDTH:
            return super()._text(x, y, words, kind)
        close = f'textLength="{round(min(usual, _LINE_WIDTH))}" lengthAdjust="spacingAndGlyphs"'
        return f'<text class="{kind}" x="{x}" y="{y}" {close}>{escape(words)}</text>'


_LARGE: Final = 1.5
"""The dealer's cards."""
_USUAL: Final = 1.22
_SMALL: Final = 0.84
"""Cards of several hands at a seat."""
_OVERLAP: Final = 26
_FAN: Final = 12
_SEAT_WIDTH: Final = 126
"""The width of a hand that does not reach its neighbour's."""
_SPLIT_WIDTH: Final = 80
_LINE_WIDTH: Final = 112
"""The width of a line of words."""
_LETTER: Final = {"total": 11.0, "bet": 9.0, "bet beside": 7.5, "total side": 8.5}
"""The usual width of a letter; on a small screen they are larger."""
_LARGER: Final = 1.25


def _steps(names: tuple[str, ...], scale: float, *, comes: bool) -> tuple[float, int]:
    """From one card to the next: two lie beside each other, more overlap, and many fan downwards,
    so that the corner of each is visible and a seat keeps to its place."""
    count = len(names) + comes
    if count <= 2 or DOWN in names or scale >= _LARGE:
        return CARD_WIDTH + 4, 0
    small = scale <= _SMALL
    room = ((_SPLIT_WIDTH if small else _SEAT_WIDTH) / scale - CARD_WIDTH) / (count - 1)
    if room >= _OVERLAP:
        return _OVERLAP, 0
    return round(room, 1), 0 if small else _FAN


def _scaled_size(names: tuple[str, ...], scale: float, *, comes: bool) -> tuple[int, int]:
    steps = max(len(names) + comes - 1, 0)
    along, down = _steps(names, scale, comes=comes)
    return round((CARD_WIDTH + along * steps) * scale), round((CARD_HEIGHT + down * steps) * scale)


def _scaled(names: tuple[str, ...], x: int, y: int, scale: float, *, comes: bool) -> str:
    """From left to right; the place of the next card last, dashed."""
    if not names and not comes:
        return ""
    along, down = _steps(names, scale, comes=comes)
    left = x - _scaled_size(names, scale, comes=comes)[0] // 2
    drawn = [card(name, 0, 0) for name in names]
    if comes:
        drawn.append(
            f'<rect class="next" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="5"/>'
            f'<text class="next-mark" x="{CARD_WIDTH // 2 + 4}" y="46">+</text>'
        )
    inner = "".join(
        f'<g transform="translate({round(at * along, 1)} {at * down})">{one}</g>'
        for at, one in enumerate(drawn)
    )
    return f'<g transform="translate({left} {y}) scale({scale})">{inner}</g>'
