"""Pages rendered from templates; styles, scripts and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from controller.procedure.prompts import Texts
from controller.screens.common.sessions import Appearance, PageSession

FOR_EVER: Final = "public, max-age=31536000, immutable"
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class StaticFiles:
    """The files in the `static` folders of these packages, cached in memory.

    Their URLs contain a hash of all of them, so that browsers may cache them for ever and a module
    can import its neighbours."""

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


class Pages:
    """The templates of some packages, named by package: "review/rounds.html"."""

    def __init__(
        self,
        texts: Texts,
        static: StaticFiles,
        words: Mapping[str, Any],
        base: str = "",
        **packages: str,
    ) -> None:
        """`words`: globals of the templates, beside t() and static(). `base`: the path at which the
        application is mounted."""
        loaders = {name: PackageLoader(package) for name, package in packages.items()}
        self._texts = texts
        self.base = base
        self._templates = Environment(
            loader=PrefixLoader(loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.globals.update(
            words, t=texts, base=base, static=lambda name: base + static.path(name)
        )

    @property
    def texts(self) -> Texts:
        return self._texts

    def prepare(self) -> None:
        """Parse all templates now, so that no request waits for it."""
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def text(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(**values)

    def page(
        self,
        template: str,
        session: PageSession | None = None,
        /,
        *,
        status: int = 200,
        **values: Any,
    ) -> Response:
        """Returns the rendered page in the session's appearance."""
        appearance = Appearance() if session is None else session.appearance
        return HTMLResponse(
            self.text(template, session=session, appearance=appearance, **values), status
        )
