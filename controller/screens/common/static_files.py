"""Styles, scripts and pictures of the pages, under addresses that change with their content.

A browser may keep them for ever. All have one hash together, so that a module finds the others
beside it.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.responses import Response

FOR_EVER: Final = "public, max-age=31536000, immutable"
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class StaticFiles:
    """Read once: the files in `static` of these packages."""

    def __init__(self, *packages: str) -> None:
        self._files: dict[str, bytes] = {}
        for package in packages:
            for one in files(package).joinpath("static").iterdir():
                if one.name.rpartition(".")[2] in _TYPES:
                    self._files[one.name] = one.read_bytes()
        whole = sha256()
        for name, data in sorted(self._files.items()):
            whole.update(f"{name} {len(data)} ".encode() + data)
        self.hash = whole.hexdigest()[:16]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._files)

    def path(self, name: str) -> str:
        """LookupError for a file that there is not."""
        if name not in self._files:
            raise LookupError(name)
        return f"/static/{self.hash}/{name}"

    def answer(self, hashed: str, name: str) -> Response | None:
        data = self._files.get(name)
        if data is None or hashed != self.hash:
            return None
        kind = _TYPES[name.rpartition(".")[2]]
        return Response(data, media_type=kind, headers={"Cache-Control": FOR_EVER})
