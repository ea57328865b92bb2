"""The OpenAPI document, and the operation of a path."""

from __future__ import annotations

from typing import Any

from controller.api.http.openapi import document
from controller.api.http.routes import ROUTES

DOCUMENT = document(ROUTES)


def operation(method: str, path: str) -> dict[str, Any]:
    template = next(one for one in DOCUMENT["paths"] if _fits(one, path))
    found: dict[str, Any] = DOCUMENT["paths"][template][method.lower()]
    return found


def _fits(template: str, path: str) -> bool:
    ours, theirs = template.split("/"), path.split("/")
    same = len(ours) == len(theirs)
    return same and all(a == b or a[:1] == "{" for a, b in zip(ours, theirs, strict=True))
