"""The software bill of materials of a release: CycloneDX 1.6 as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from controller.audit.release import canonical_name

_SPECIFICATION: Final = "1.6"
_LICENSE: Final = "License :: "
_MAX_NAME: Final = 100
"""Longest name of a licence; a longer text is the licence itself."""


class Component(NamedTuple):
    """An installed package."""

    name: str
    version: str
    sha256: str
    """Of the archive that was installed."""
    metadata: Mapping[str, Any]
    """The fields of its METADATA, as pip's report has them."""
    needs: tuple[str, ...]
    """Canonical names."""

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{canonical_name(self.name)}@{self.version}"


def sbom(own: Component, needed: Iterable[Component], commit: str, seconds: int) -> str:
    """The document. It depends on its arguments alone: the same release gives the same bytes."""
    every = [own, *sorted(needed, key=lambda one: canonical_name(one.name))]
    purls = {canonical_name(one.name): one.purl for one in every}
    document = {
        "$schema": f"http://cyclonedx.org/schema/bom-{_SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": _SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'holecard {own.version} {commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                **_component(own, "application"),
                "properties": [{"name": "holecard:commit", "value": commit}],
            },
        },
        "components": [_component(one, "library") for one in every[1:]],
        "dependencies": [
            {
                "ref": one.purl,
                "dependsOn": sorted(purls[name] for name in set(one.needs) & purls.keys()),
            }
            for one in every
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _component(one: Component, kind: str) -> dict[str, object]:
    found: dict[str, object] = {
        "type": kind,
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "hashes": [{"alg": "SHA-256", "content": one.sha256}],
        "purl": one.purl,
    }
    licenses = _licenses(one.metadata)
    return {**found, "licenses": licenses} if licenses else found


def _licenses(metadata: Mapping[str, Any]) -> list[dict[str, object]]:
    """The licences that a package states: an expression, else its classifiers, else a name."""
    expression = metadata.get("license_expression")
    if expression:
        return [{"expression": expression}]
    classifiers = (one for one in metadata.get("classifier", ()) if one.startswith(_LICENSE))
    names = [one.rpartition(" :: ")[2] for one in classifiers]
    text = str(metadata.get("license") or "").strip()
    if not names and text and "\n" not in text and len(text) <= _MAX_NAME:
        names = [text]
    return [{"license": {"name": name}} for name in names]
