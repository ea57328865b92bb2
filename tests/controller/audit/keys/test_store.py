"""Loading of key files, and rejection of invalid ones."""

import base64
import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.serialization import NoEncryption

from controller.audit.format.notes import (
    KeyKind,
    SigningKey,
    VerifierKey,
    format_note,
    parse_note,
    verify_note,
)
from controller.audit.keys import (
    files,
    load_hole_key,
    load_surveillance_public,
    load_table_private,
    load_table_public,
    store,
)
from controller.audit.keys.store import (
    load_surveillance_private,
    load_witness_key,
    load_witness_public,
)
from drivers.keys import KeyProblem
from tests.conftest import require
from tests.support.audit.record.table import failing
from tests.support.audit.tools.key_places import (
    CHANGED,
    ED,
    FOREIGN,
    PKCS8,
    WITNESS,
    contents,
    filled,
    secrets_of,
)

ORIGIN = "holecard/mega-1/0123456789abcdef"
CHECKPOINT = f"{ORIGIN}\n1\n{base64.b64encode(bytes(32)).decode()}\n"

LOADS: dict[str, tuple[Callable[[Path], object], ...]] = {
    "table.key": (load_table_private,),
    "table.pub": (load_table_private, load_table_public),
    "hole.key": (load_hole_key,),
    "surveillance.key": (load_surveillance_private,),
    "surveillance.pub": (load_surveillance_private, load_surveillance_public),
    "witness.key": (load_witness_key,),
    "witness.pub": (load_witness_key, load_witness_public),
}
"""By file: the functions that read it."""
CASES = [(name, load) for name, loads in LOADS.items() for load in loads]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("made") / "keys")


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "keys")


# --- what they are good for -------------------------------------------------------------------


def test_the_tables_key_signs_with_the_records_name(place: Path) -> None:
    key = SigningKey(f"{ORIGIN}/table", load_table_private(place))
    note = parse_note(format_note("words\n", key.sign("words\n")))
    assert len(verify_note(note, [VerifierKey(f"{ORIGIN}/table", load_table_public(place))])) == 1


def test_the_witnesss_key_cosigns_with_its_name(place: Path) -> None:
    key = load_witness_key(place)
    assert key.name == WITNESS
    note = parse_note(format_note(CHECKPOINT, key.cosign(CHECKPOINT, 1_700_000_000)))
    known = load_witness_public(place)
    assert known.kind is KeyKind.COSIGNATURE
    assert [one.seconds for one in verify_note(note, [known])] == [1_700_000_000]


def test_a_verifier_key_is_one_standard_line(place: Path) -> None:
    name, key_id, encoded = (place / "witness.pub").read_text().removesuffix("\n").split("+", 2)
    public = base64.b64decode(encoded)
    assert (name, public[0], len(public)) == (WITNESS, 4, 33)
    assert hashlib.sha256(name.encode() + b"\n" + public).hexdigest()[:8] == key_id


def test_surveillances_private_key_matches_its_public_key(place: Path) -> None:
    assert load_surveillance_private(place).public_key() == load_surveillance_public(place)


def test_the_table_needs_only_public_keys_of_others(place: Path) -> None:
    for name in ("surveillance.key", "witness.key"):
        (place / name).unlink()
    assert isinstance(load_surveillance_public(place), X25519PublicKey)
    assert load_witness_public(place).name == WITNESS


def test_the_hole_key_is_32_bytes_and_never_printed(place: Path) -> None:
    key = load_hole_key(place)
    assert key.open().hex() in (place / "hole.key").read_text()
    assert (len(key.open()), repr(key)) == (32, "HoleKey(...)")


def test_a_fingerprint_is_half_a_sha_256(place: Path) -> None:
    comment, line = (place / "surveillance.pub").read_text().splitlines()
    digits = hashlib.sha256(base64.b64decode(line)).hexdigest()[:32].upper()
    groups = "-".join(digits[at : at + 4] for at in range(0, 32, 4))
    assert comment == f"# public key of surveillance (X25519); fingerprint {groups}"
    comment, line = (place / "table.pub").read_text().splitlines()
    assert comment.startswith("# public key of a table (Ed25519); fingerprint ")
    assert base64.b64decode(line) == load_table_public(place)


@pytest.mark.parametrize("role", ["table", "surveillance", "witness"])
def test_openssl_reads_the_same_key(place: Path, role: str) -> None:
    require(shutil.which("openssl"), "openssl")
    told = subprocess.run(
        ["openssl", "pkey", "-in", place / f"{role}.key", "-pubout", "-outform", "DER"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    public = {
        "table": load_table_public(place),
        "surveillance": load_surveillance_public(place).public_bytes_raw(),
        "witness": load_witness_public(place).key,
    }
    assert told.stdout[-32:] == public[role]


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "load"), CASES)
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o666, 0o700 | 0o010])
def test_a_file_open_to_others_is_rejected(
    place: Path, name: str, load: Callable[[Path], object], bits: int
) -> None:
    file = place / name
    file.chmod(bits)
    with pytest.raises(KeyProblem) as caught:
        load(place)
    assert str(caught.value) == (
        f"{file}: others may touch it (mode {bits:o}); allowed: mode 600: chmod 600 {file}"
    )


@pytest.mark.parametrize(("name", "load"), CASES)
def test_a_directory_open_to_others_is_rejected(
    place: Path, name: str, load: Callable[[Path], object]
) -> None:
    place.chmod(0o750)
    with pytest.raises(KeyProblem) as caught:
        load(place)
    assert str(caught.value) == (
        f"{place}: others may touch it (mode 750); allowed: mode 700: chmod 700 {place}"
    )
    with pytest.raises(KeyProblem) as caught:
        load(place / "none")
    assert str(caught.value) == (
        f"{place}/none: there is no such directory; allowed: `holecard keys new` makes one"
    )
    with pytest.raises(KeyProblem, match="is no directory"):
        load(place / name)


@pytest.mark.parametrize(("name", "load"), CASES)
def test_a_missing_or_irregular_file_is_rejected(
    place: Path, name: str, load: Callable[[Path], object]
) -> None:
    file = place / name
    file.rename(place.parent / name)
    with pytest.raises(KeyProblem) as caught:
        load(place)
    assert str(caught.value).startswith(f"{file}: is missing; allowed: the file ")
    file.symlink_to(place.parent / name)
    with pytest.raises(KeyProblem, match=f"{name}: cannot be opened: too many levels"):
        load(place)
    file.unlink()
    file.mkdir()
    with pytest.raises(KeyProblem, match=f"{name}: is no file"):
        load(place)


@pytest.mark.parametrize(("name", "load"), CASES)
def test_a_file_of_another_user_is_rejected(
    place: Path, name: str, load: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    with pytest.raises(KeyProblem, match=f"belongs to the user with number {us}"):
        load(place)


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("name", ["table.key", "surveillance.key", "witness.key"])
def test_an_invalid_private_key_is_rejected(place: Path, name: str, foreign: str) -> None:
    data, what = FOREIGN[foreign]
    (place / name).write_bytes(data)
    for load in LOADS[name]:
        with pytest.raises(KeyProblem) as caught:
            load(place)
        assert str(caught.value).startswith(f"{place / name}: {what}; allowed: a private ")
        assert caught.value.__context__ is None


def test_a_private_key_without_its_public_key_is_rejected(place: Path) -> None:
    (place / "table.key").write_bytes(ED.private_bytes(*PKCS8, NoEncryption()))
    with pytest.raises(KeyProblem, match=r"does not belong to table\.pub"):
        load_table_private(place)


@pytest.mark.parametrize("change", CHANGED)
def test_a_changed_or_misplaced_file_is_rejected(place: Path, change: str) -> None:
    name, changed, what = CHANGED[change]
    hidden = secrets_of(place)
    altered = changed(contents(place))
    assert altered != (place / name).read_bytes()
    (place / name).write_bytes(altered)
    for load in LOADS[name]:
        with pytest.raises(KeyProblem) as caught:
            load(place)
        assert what in str(caught.value)
        assert str(place) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not [secret for secret in hidden if secret in str(caught.value)]
        assert caught.value.__context__ is None


@pytest.mark.parametrize("bit", range(0, 256, 5))
def test_every_flipped_bit_of_a_public_key_is_detected(place: Path, bit: int) -> None:
    """Hole cards encrypted to a corrupt key would be lost."""
    comment, line = (place / "surveillance.pub").read_text().splitlines()
    raw = bytearray(base64.b64decode(line))
    raw[bit // 8] ^= 1 << bit % 8
    (place / "surveillance.pub").write_text(f"{comment}\n{base64.b64encode(raw).decode()}\n")
    with pytest.raises(KeyProblem, match="its key and its fingerprint do not belong together"):
        load_surveillance_public(place)


def test_a_weak_public_key_is_rejected(place: Path) -> None:
    for weak in (bytes(32), b"\x01" + bytes(31)):
        (place / "surveillance.pub").write_bytes(files.surveillance_text(weak))
        with pytest.raises(KeyProblem, match="holds a key that nothing can be sealed to"):
            load_surveillance_public(place)


def test_a_witness_key_of_the_wrong_kind_is_rejected(place: Path) -> None:
    (place / "witness.pub").write_bytes(files.witness_text(SigningKey(WITNESS, ED).verifier))
    with pytest.raises(KeyProblem, match="signs notes and countersigns nothing"):
        load_witness_public(place)


def test_a_witness_name_with_control_characters_is_rejected(place: Path) -> None:
    (place / "witness.pub").write_bytes(files.witness_text(SigningKey("floor\x9b2J", ED).cosigner))
    with pytest.raises(KeyProblem, match="holds no verifier key, or a damaged one") as caught:
        load_witness_public(place)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("name", "load"), CASES)
@pytest.mark.parametrize("function", ["read", "open", "fstat", "lstat"])
def test_a_disk_error_is_reported(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    load: Callable[[Path], object],
    function: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing(errno.EIO))
        with pytest.raises(KeyProblem, match="input/output error"):
            load(place)
    assert load(place)


def test_a_huge_file_is_not_read_whole(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (place / "hole.key").open("ab") as file:
        file.truncate(1 << 40)
    asked: list[int] = []
    read = os.read

    def counted(descriptor: int, size: int) -> bytes:
        asked.append(size)
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", counted)
    with pytest.raises(KeyProblem, match="is not a comment"):
        load_hole_key(place)
    assert asked == [store.MAX_FILE_BYTES]
