"""The software bill of materials is CycloneDX 1.6."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema_rs

from controller.packaging.sbom import Component, sbom
from tests.conftest import require

OWN = Component(
    "holecard", "1.0", "ab" * 32, {"license_expression": "Apache-2.0"}, ("one-two", "absent")
)
NEEDED = (
    Component("three", "3", "cd" * 32, {"license": "X" * 999}, ()),
    Component(
        "One_Two",
        "2",
        "ef" * 32,
        {"classifier": ["License :: OSI Approved :: MIT License", "Topic :: Games"]},
        ("three",),
    ),
    Component("four", "4", "01" * 32, {"license": "BSD"}, ()),
)


def made() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sbom(OWN, NEEDED, "c0" * 20, 1_800_000_000))
    return found


def test_components_have_versions_hashes_and_licences() -> None:
    found = made()
    assert found["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert [one["purl"] for one in found["components"]] == [
        "pkg:pypi/four@4",
        "pkg:pypi/one-two@2",
        "pkg:pypi/three@3",
    ]
    assert [one.get("licenses") for one in found["components"]] == [
        [{"license": {"name": "BSD"}}],
        [{"license": {"name": "MIT License"}}],
        None,
    ]
    assert found["components"][1]["hashes"] == [{"alg": "SHA-256", "content": "ef" * 32}]
    needs = {one["ref"]: one["dependsOn"] for one in found["dependencies"]}
    assert needs["pkg:pypi/holecard@1.0"] == ["pkg:pypi/one-two@2"]
    assert needs["pkg:pypi/one-two@2"] == ["pkg:pypi/three@3"]


def test_the_same_release_gives_the_same_bytes() -> None:
    first = sbom(OWN, NEEDED, "c0" * 20, 1_800_000_000)
    assert first == sbom(OWN, reversed(NEEDED), "c0" * 20, 1_800_000_000)
    assert first != sbom(OWN, NEEDED, "c1" * 20, 1_800_000_000)


def test_it_is_valid_by_the_schema() -> None:
    spec = importlib.util.find_spec("cyclonedx")
    require(spec is not None, "the extra `release`")
    assert spec is not None
    schemas = Path(str(spec.origin)).parent / "schema" / "_res"
    every = {file.name: json.loads(file.read_bytes()) for file in schemas.glob("*.schema.json")}
    named = [(f"http://cyclonedx.org/schema/{name}", schema) for name, schema in every.items()]
    valid = jsonschema_rs.validator_for(
        every["bom-1.6.SNAPSHOT.schema.json"], registry=jsonschema_rs.Registry(named)
    )
    assert [str(one) for one in valid.iter_errors(made())] == []
    assert not valid.is_valid({**made(), "components": [{"name": "no type"}]})
