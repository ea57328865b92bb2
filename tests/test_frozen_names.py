"""Names that are bytes: tags and fields of values that are stored or sent.

`frozen_names.json` was made from the first version that wrote records, without values that are
encoded as arrays. If a test here fails, a rename has changed bytes: rename back, or keep the old
name with `tag=` or `rename=`.
"""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from tests.support.paths import ROOT

PACKAGES = ("controller", "drivers", "firmware_protocol", "hil")
FROZEN = json.loads((ROOT / "tests" / "frozen_names.json").read_text("utf-8"))


def _structs() -> Iterator[type[msgspec.Struct]]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if found.name.endswith("__main__"):
                continue
            for value in vars(importlib.import_module(found.name)).values():
                if isinstance(value, type) and issubclass(value, msgspec.Struct):
                    yield value


@cache
def _encoded() -> frozenset[tuple[str | int | None, tuple[str, ...]]]:
    return frozenset(
        (one.__struct_config__.tag, tuple(one.__struct_encode_fields__)) for one in _structs()
    )


@pytest.mark.parametrize(("tag", "fields"), FROZEN["tagged"])
def test_tag_and_fields_are_unchanged(tag: str, fields: list[str]) -> None:
    assert (tag, tuple(fields)) in _encoded()


@pytest.mark.parametrize("fields", FROZEN["untagged"], ids=",".join)
def test_fields_are_unchanged(fields: list[str]) -> None:
    assert (None, tuple(fields)) in _encoded()


@pytest.mark.parametrize("fields", FROZEN["version_1"], ids=",".join)
def test_fields_of_version_1_are_still_decoded(fields: list[str]) -> None:
    """Records of version 1 have more fields than are written today."""
    assert any(tag is None and {*fields} <= {*found} for tag, found in _encoded())
