"""PINs: which will do, and what is kept of one."""

import hmac
from hashlib import sha256

import pytest
from argon2.exceptions import HashingError, VerifyMismatchError
from argon2.low_level import Type, verify_secret
from hypothesis import given
from hypothesis import strategies as st

from controller.people import pins
from controller.people.pins import BadPin, CannotHash, Cost, PeopleKey, Verifier, check_pin
from tests.support.table.simulated.house import CHEAP, DEARER, KEY


@pytest.mark.parametrize(
    ("pin", "words"),
    [
        ("", "digits only"),
        ("40293", "6 to 32 digits, not 5"),
        ("4" * 16 + "2" * 17, "6 to 32 digits, not 33"),
        ("40293a", "digits only"),
        ("402 931", "digits only"),
        ("+402931", "digits only"),
        ("\u0664\u0660\u0662\u0669\u0663\u0661", "digits only"),
        ("000000", "counts on"),
        ("77777777", "counts on"),
        ("123456", "counts on"),
        ("654321", "counts on"),
        ("890123", "counts on"),
        ("210987", "counts on"),
        ("13579135", "counts on"),
        ("121212", "repeats itself"),
        ("123123", "repeats itself"),
        ("4714714", "repeats itself"),
        ("402931", "is the badge"),
        ("771046", "is the badge"),
    ],
)
def test_pins_that_will_not_do(pin: str, words: str) -> None:
    for badge in ("402931", "D-77.1046"):
        try:
            check_pin(pin, badge)
        except BadPin as problem:
            text = str(problem)
            assert not pin or pin not in text
            if words in text:
                return
    pytest.fail("nobody refused it")


@pytest.mark.parametrize("pin", ["402931", "123457", "112233", "9" * 31 + "1", "100000"])
def test_pins_that_will_do(pin: str) -> None:
    check_pin(pin, "D-17")


@given(st.integers(0, 9), st.integers(0, 9), st.integers(6, 32))
def test_nothing_that_counts_on_will_do(first: int, step: int, size: int) -> None:
    pin = "".join(str((first + step * at) % 10) for at in range(size))
    with pytest.raises(BadPin):
        check_pin(pin, "D-17")


@given(st.text(max_size=40), st.text(max_size=12))
def test_any_text_is_taken_or_refused_in_words_without_it(pin: str, badge: str) -> None:
    words = ""
    try:
        check_pin(pin, badge)
    except BadPin as problem:
        words = str(problem)
    assert words or (pin.isascii() and pin.isdigit())
    assert len(pin) < 6 or pin not in words


# --- what is kept -----------------------------------------------------------------------------


def test_a_pin_fits_its_badge_under_its_key_and_nothing_else() -> None:
    made = KEY.verifier("D-17", "402931", CHEAP)
    for key, badge, pin, fits in (
        (KEY, "D-17", "402931", True),
        (KEY, " d-17 ", "402931", True),
        (KEY, "D-17", "402932", False),
        (KEY, "D-18", "402931", False),
        (KEY, "D-1", "7402931", False),
        (PeopleKey(bytes(32)), "D-17", "402931", False),
    ):
        assert key.fits(made, badge, pin) is fits, (badge, pin)
    assert KEY.verifier("D-17", "402931", CHEAP).salt != made.salt


def test_what_is_kept_is_argon2id_of_an_hmac() -> None:
    """Made again here from the words at the head of the module, and asked with argon2's own."""
    made = str(KEY.verifier("D-17", "402931", DEARER)).encode()
    parts = b"".join(len(part).to_bytes(4, "big") + part for part in (b"d-17", b"402931"))
    secret = hmac.new(KEY.open(), b"holecard-people-v1\0pin\0" + parts, sha256).digest()
    assert made.startswith(b"$argon2id$v=19$m=16,t=2,p=1$")
    assert verify_secret(made, secret, Type.ID)
    with pytest.raises(VerifyMismatchError):
        verify_secret(made, b"402931", Type.ID)


def test_what_is_kept_costs_as_much_as_is_published_for_it() -> None:
    assert pins.COST.kib >= 64 * 1024
    assert pins.COST.passes >= 3


@given(
    st.builds(Cost, st.integers(128, 1 << 20), st.integers(1, 64), st.integers(1, 16)),
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=32, max_size=32),
)
def test_a_verifier_is_read_as_it_was_written(cost: Cost, salt: bytes, digest: bytes) -> None:
    made = Verifier(cost, salt, digest)
    assert Verifier.parse(str(made)) == made
    assert str(made).rpartition("$")[2] not in repr(made)


GOOD = str(Verifier(CHEAP, bytes(16), bytes(32)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "402931",
        GOOD + "\n",
        GOOD.replace("argon2id", "argon2i"),
        GOOD.replace("v=19", "v=16"),
        GOOD.replace("m=8", "m=08"),
        GOOD.replace("m=8", "m=7"),
        GOOD.replace("m=8", "m=1048577"),
        GOOD.replace("m=8,t=1,p=1", "m=8,t=1,p=2"),
        GOOD.replace("t=1", "t=0"),
        GOOD.replace("t=1", "t=65"),
        GOOD.replace("p=1", "p=17").replace("m=8", "m=4096"),
        GOOD[:-1],
        GOOD[:-1] + "B",
        GOOD + "A",
    ],
)
def test_what_is_no_verifier_is_refused(text: str) -> None:
    assert str(Verifier.parse(GOOD)) == GOOD
    with pytest.raises(ValueError, match=r"verifier|memory"):
        Verifier.parse(text)


def test_a_machine_without_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise HashingError("Memory allocation error")

    monkeypatch.setattr(pins, "hash_secret_raw", full)
    with pytest.raises(CannotHash, match="Memory allocation error"):
        KEY.verifier("D-17", "402931", CHEAP)


def test_the_key_shows_nothing_of_itself() -> None:
    key = PeopleKey.generate()
    assert key.open().hex() not in f"{key} {key!r} {key.fingerprint}".lower().replace("-", "")
    assert key.fingerprint != PeopleKey.generate().fingerprint
    with pytest.raises(ValueError, match="32 bytes"):
        PeopleKey(b"short")


# --- badges that nobody has -------------------------------------------------------------------


@given(st.text(max_size=300))
def test_a_decoy_is_always_the_same_and_costs_what_others_cost(badge: str) -> None:
    costs = (CHEAP, DEARER)
    made = KEY.decoy(badge, costs)
    assert made == KEY.decoy(badge, costs)
    assert made.cost in costs
    assert KEY.decoy(badge, ()).cost == pins.COST
    assert not KEY.fits(made, badge, "402931")


def test_decoys_cost_the_one_or_the_other() -> None:
    drawn = [KEY.decoy(f"Z-{at}", (CHEAP, DEARER)).cost for at in range(200)]
    assert 60 < drawn.count(CHEAP) < 140


def test_what_guesses_are_counted_by_names_nobody_and_changes_with_the_pin() -> None:
    old, new = (KEY.verifier("D-17", "402931", CHEAP) for _ in range(2))
    assert KEY.lock("D-17", old) == KEY.lock("d-17 ", old)
    assert KEY.lock("D-17", old) != KEY.lock("D-17", new)
    assert KEY.lock("D-17", old) != KEY.lock("D-18", old)
    assert KEY.lock("D-17", old) != PeopleKey(bytes(32)).lock("D-17", old)
