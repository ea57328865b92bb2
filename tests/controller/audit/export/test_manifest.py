"""Whether a case is what it was made of: each file that is not is told by name."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.audit.errors import NoRecord, RecordProblem
from controller.audit.export import check_case, export_case
from controller.audit.export.case_folder import CaseProblem
from controller.audit.read.lookup import Selection
from tests.support.audit.tools.outside import files_in, flip

SEGMENT = "record/segments/00000001.seg"


@pytest.fixture(scope="module")
def made(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    record = shutil.copytree(whole, place / "mega-1")
    export_case(record, place / "case", Selection(1, 2))
    export_case(record, place / "case.zip", Selection(1, 2))
    return place


@pytest.fixture
def case(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made / "case", tmp_path / "case")


def zipped(case: Path, *more: tuple[str, bytes]) -> Path:
    out = case.with_suffix(".zip")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in (*files_in(case).items(), *more):
            packed.writestr(name, data)
    return out


def missing(case: Path) -> str:
    (case / SEGMENT).unlink()
    return f"{SEGMENT}: is missing"


def emptied(case: Path) -> str:
    size = (case / SEGMENT).stat().st_size
    (case / SEGMENT).write_bytes(b"")
    return f"{SEGMENT}: was cut off: 0 bytes of {size}"


def cut_off(case: Path) -> str:
    data = (case / SEGMENT).read_bytes()
    (case / SEGMENT).write_bytes(data[:-1])
    return f"{SEGMENT}: was cut off: {len(data) - 1} bytes of {len(data)}"


def added_to(case: Path) -> str:
    data = (case / SEGMENT).read_bytes()
    (case / SEGMENT).write_bytes(data + b"\0")
    return f"{SEGMENT}: was added to: more than {len(data)} bytes"


def changed(case: Path) -> str:
    flip(case / "verify_record.py", 100)
    return "verify_record.py: was changed"


def extra(case: Path) -> str:
    (case / "record" / "more.note").write_text("trust me")
    return "'record/more.note': is not of this case"


def renamed(case: Path) -> str:
    (case / "FORMAT.md").rename(case / "FORM.md")
    return "FORMAT.md: is missing; 'FORM.md': is not of this case"


@pytest.mark.parametrize("form", ["case", "case.zip"])
def test_a_case_that_nobody_touched_is_right(form: str, made: Path) -> None:
    found = check_case(made / form)
    assert (found.wrong, found.manifest.exported.first) == ((), 1)


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("harm", [missing, emptied, cut_off, added_to, changed, extra, renamed])
def test_each_harm_is_told_by_name(harm: Callable[[Path], str], pack: bool, case: Path) -> None:
    words = harm(case)
    found = check_case(zipped(case) if pack else case)
    assert not found.right
    assert "; ".join(found.wrong) == words


def test_all_harms_are_told_together(case: Path) -> None:
    words = {words for harm in (changed, cut_off, extra) for words in [harm(case)]}
    assert set(check_case(case).wrong) == words


def test_a_link_is_no_file_of_a_case(case: Path, tmp_path: Path) -> None:
    file = case / "FORMAT.md"
    shutil.move(file, tmp_path / "elsewhere.md")
    file.symlink_to(tmp_path / "elsewhere.md")
    assert check_case(case).wrong == ("FORMAT.md: cannot be read: it is no file",)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_in_a_zip_is_told(case: Path) -> None:
    assert "FORMAT.md: is there twice" in check_case(zipped(case, ("FORMAT.md", b"another"))).wrong


@pytest.mark.parametrize("name", ["../outside", "/outside", "record/../../outside"])
def test_a_name_that_leads_out_of_a_zip_is_not_of_the_case(name: str, case: Path) -> None:
    assert check_case(zipped(case, (name, b"x"))).wrong == (f"{name!r}: is not of this case",)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_zip_that_was_cut_off_is_told(share: float, made: Path, tmp_path: Path) -> None:
    data = (made / "case.zip").read_bytes()
    out = tmp_path / "cut.zip"
    out.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CaseProblem, match="is no zip, or a part of one"):
        check_case(out)


def test_no_bit_of_a_zip_can_be_flipped_unseen(made: Path, tmp_path: Path) -> None:
    """But where a zip says what nobody reads: times, modes, and the like of its entries."""
    data = (made / "case.zip").read_bytes()
    right = {name: zipfile.ZipFile(made / "case.zip").read(name) for name in names(made)}
    out = tmp_path / "flipped.zip"
    for at in range(0, len(data), len(data) // 150):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        out.write_bytes(flipped)
        try:
            found = check_case(out)
        except RecordProblem:
            continue
        if found.right:
            with zipfile.ZipFile(out) as packed:
                assert {name: packed.read(name) for name in packed.namelist()} == right


def names(made: Path) -> list[str]:
    with zipfile.ZipFile(made / "case.zip") as packed:
        return packed.namelist()


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'{"format":"holecard case 2"}'])
def test_a_manifest_that_is_none_is_told(data: bytes, case: Path) -> None:
    (case / "manifest.json").write_bytes(data)
    with pytest.raises(CaseProblem, match=r"manifest\.json: cannot be read"):
        check_case(case)


def test_a_case_without_a_manifest_is_told(case: Path, tmp_path: Path) -> None:
    (case / "manifest.json").unlink()
    for one in (case, zipped(case)):
        with pytest.raises(CaseProblem, match=r"it has no manifest\.json"):
            check_case(one)
    with pytest.raises(NoRecord, match="there is no such case"):
        check_case(tmp_path / "nothing")


def test_a_manifest_that_was_altered_has_another_seal(case: Path, made: Path) -> None:
    before = check_case(made / "case").seal
    (case / "FORMAT.md").write_text("another page")
    text = (case / "manifest.json").read_text("utf-8")
    said = next(one for one in check_case(case).manifest.files if one.path == "FORMAT.md")
    from hashlib import sha256

    text = text.replace(said.sha256, sha256(b"another page").hexdigest())
    text = text.replace(f'"size": {said.size}', '"size": 12')
    (case / "manifest.json").write_text(text, "utf-8")
    found = check_case(case)
    assert found.right
    assert found.seal != before
