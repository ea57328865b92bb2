"""Styles, scripts and pictures of the pages, with the hash of their content in the URL.

Browsers may cache them for ever. All files share one hash, so that a module can import its
neighbours.
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
    """The files in the `static` folders of these packages, cached in memory."""

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
        """Raises LookupError if there is no such file."""
        if name not in self._files:
            raise LookupError(name)
        return f"/static/{self.hash}/{name}"

    def answer(self, hashed: str, name: str) -> Response | None:
        data = self._files.get(name)
        if data is None or hashed != self.hash:
            return None
        return Response(
            data, media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": FOR_EVER}
        )
