"""What the reader of a simulated shoe makes of a card."""

from __future__ import annotations

from typing import Any

import pytest

from firmware_protocol.device import Draw, InjectDefect, Load
from firmware_protocol.messages import (
    CARD_UNREAD,
    Capabilities,
    CardFlags,
    CardRead,
    CutCard,
    DeckKind,
    Loaded,
    ReadFail,
    ReadWhy,
)
from hil.devices import SimulatedShoe, card_names
from tests.support.hil.devices.desk import (
    ONE_MS,
    OPEN,
    Scene,
    cannot,
    draw,
    names,
    read_card,
    table,
)

# --- what the reader makes of a card --------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "confidence", "alternative"),
    [
        ({"read": "low"}, 55, card_names.number("As")),
        ({"confidence": 80}, 80, CARD_UNREAD),
        ({"confidence": 79}, 79, card_names.number("As")),
        ({"read": "low", "confidence": 0}, 0, card_names.number("As")),
    ],
)
def test_a_doubtful_card_has_an_alternative(
    how: dict[str, Any], confidence: int, alternative: int
) -> None:
    read = read_card(table(load=Load(cards=("Ks",))), **how)
    assert (read.confidence, read.alternative) == (confidence, alternative)


def test_batches_take_turns_by_their_backs() -> None:
    """Over power cuts too; what was loaded and not dealt is the same batch again."""
    scene, plain, nine = Scene(SimulatedShoe), Load(decks=1), Load(decks=1, back=9)
    backs = []
    for load in (
        (plain, OPEN),
        (plain, plain, "restart", OPEN),
        (plain,),
        (nine,),
        (nine,),
        (plain,),
    ):
        scene.play(*load)
        backs.append((read_card(scene).back, scene.look()["back"]))
    assert backs == [(1, 1), (2, 2), (1, 1), (9, 9), (9, 9), (1, 1)]


@pytest.mark.parametrize("card", card_names.NAMES)
def test_a_misread_card_is_another_one(card: str) -> None:
    scene = table(load=Load(cards=(card,)))
    (taken_for,) = names(draw(scene, read="wrong"))
    assert taken_for != card
    assert (taken_for[1], scene.look()["out"]) == (card[1], [card])


@pytest.mark.parametrize(
    ("read", "why"),
    [
        ("unreadable", ReadWhy.UNREADABLE),
        ("no_index", ReadWhy.NO_INDEX),
        ("too_fast", ReadWhy.TOO_FAST),
        ("foreign", ReadWhy.FOREIGN),
    ],
)
@pytest.mark.parametrize("card", ["7h", "cut"])
def test_a_card_that_is_not_read_takes_its_position(card: str, read: str, why: ReadWhy) -> None:
    scene = table(load=Load(cards=("Ac", card, "2c"))).play(Draw(), "idle")
    assert draw(scene, read=read) == [ReadFail(2, why, CardFlags(0))]
    assert read_card(scene).pos == 3


def test_a_reader_that_failed_reads_nothing() -> None:
    scene = table().play(InjectDefect("reader"))
    assert draw(scene) == [ReadFail(1, ReadWhy.READER, CardFlags(0))]
    scene.do(InjectDefect("reader", on=False))
    assert scene.mechanism.selftest(scene.now) == ()
    assert names(draw(scene)) == ["2c"]


@pytest.mark.parametrize(
    ("load", "draws", "flags"),
    [
        (
            Load(decks=2, cards=("Ac", "Ac", "Ac", "2c", "Ac")),
            [Draw(count=5)],
            [0, 0, CardFlags.DUPLICATE, 0, CardFlags.DUPLICATE],
        ),
        (  # the first one is taken for the two
            Load(decks=1, cards=("Ac", "2c", "Ac")),
            [Draw(read="wrong"), Draw(), Draw()],
            [0, CardFlags.DUPLICATE, 0],
        ),
        (Load(decks=0, cards=("Ac",) * 3), [Draw(count=3)], [0] * 3),
        (Load(decks=1), [Draw(reversed=True)], [CardFlags.REVERSED]),
    ],
    ids=["too many", "as reported", "unknown number of decks", "reversed"],
)
def test_flags_of_reads(load: Load, draws: list[Draw], flags: list[CardFlags]) -> None:
    scene = table(load=load).play(*(step for one in draws for step in (one, "idle")))
    assert [read.flags for read in scene.those(CardRead)] == flags


def test_a_plain_shoe_sees_neither_backs_nor_direction() -> None:
    scene = table(
        make=lambda: SimulatedShoe(gate=False, lock=False, backs=False, orientation=False)
    )
    read = read_card(scene, reversed=True, read="foreign")
    assert (scene.mechanism.capabilities, read.flags, read.back) == (Capabilities(0), 0, 0)


FIRST = CardFlags.DOUBLE_FEED | CardFlags.CAME_FIRST
SECOND = CardFlags.DOUBLE_FEED | CardFlags.CAME_SECOND


def test_two_cards_pulled_together() -> None:
    scene = table()
    due = scene.now + ONE_MS * 1000
    first, under = draw(scene, double=True)
    assert isinstance(first, CardRead)
    assert (card_names.name(first.card), first.pos, first.flags) == ("Ac", 1, FIRST)
    assert under == ReadFail(2, ReadWhy.NO_INDEX, SECOND)
    assert (scene.at(CardRead), scene.at(ReadFail)) == ([due], [due])
    third = read_card(scene)
    assert (card_names.name(third.card), third.pos) == ("3c", 3)


def test_of_two_cards_the_second_may_be_the_one_that_is_read() -> None:
    scene = table()
    under, second = draw(scene, double=True, second_read=True)
    assert under == ReadFail(1, ReadWhy.NO_INDEX, FIRST)
    assert isinstance(second, CardRead)
    assert (card_names.name(second.card), second.pos, second.flags) == ("2c", 2, SECOND)
    assert scene.look()["out"] == ["Ac", "2c"]


@pytest.mark.parametrize("second_read", [False, True])
def test_a_reader_that_does_not_notice_the_order_of_two_cards(second_read: bool) -> None:
    scene = table(make=lambda: SimulatedShoe(orders_doubles=False))
    read, under = draw(scene, double=True, second_read=second_read)
    assert isinstance(read, CardRead)
    assert (read.pos, read.flags) == (1, CardFlags.DOUBLE_FEED)
    assert card_names.name(read.card) == ("2c" if second_read else "Ac")
    assert under == ReadFail(2, ReadWhy.NO_INDEX, CardFlags.DOUBLE_FEED)


def test_a_dirty_reader_is_less_sure() -> None:
    scene = table()
    scene.do(InjectDefect("reader_dirty"))
    assert read_card(scene).confidence == 85
    scene.do(InjectDefect("reader_dirty", on=False))
    assert read_card(scene).confidence == 99


def test_a_ten_is_one_too_many_in_decks_of_48_cards() -> None:
    scene = table(load=Load(decks=1, kind="spanish_48"))
    assert scene.those(Loaded)[-1] == Loaded(1, 1, 48, 0, DeckKind.SPANISH_48)
    load = Load(decks=1, kind="spanish_48", cards=("9c", "Tc"))
    scene = table(load=load)
    assert [read_card(scene).flags for _ in range(2)] == [CardFlags(0), CardFlags.DUPLICATE]


@pytest.mark.parametrize("read", ["unreadable", "no_index", "too_fast", "foreign"])
def test_two_cards_of_which_none_was_read(read: str) -> None:
    both = [ReadFail(1, ReadWhy.DOUBLE, FIRST), ReadFail(2, ReadWhy.NO_INDEX, SECOND)]
    assert draw(table(), double=True, read=read) == both


def test_two_cards_with_the_cut_card() -> None:
    scene = table(load=Load(cards=("cut", "Ac", "2c", "cut")))
    assert draw(scene, double=True) == [CutCard(1), ReadFail(2, ReadWhy.NO_INDEX, SECOND)]
    second = draw(scene, double=True)
    assert (names(second), second[1:]) == (["2c"], [ReadFail(4, ReadWhy.NO_INDEX, SECOND)])


def test_two_cards_need_two() -> None:
    scene = table(load=Load(cards=("Ac", "2c", "3c")))
    assert scene.do(Draw(count=5, double=True))["queued"] == 1
    scene.run()
    cannot(scene, Draw(double=True), "takes 2")


def test_the_cut_card_comes_at_its_position() -> None:
    scene = table(load=Load(decks=1, cut_at=2)).play(Draw(count=4), "idle")
    assert scene.those(CutCard) == [CutCard(3)]
    assert [read.pos for read in scene.those(CardRead)] == [1, 2, 4]
