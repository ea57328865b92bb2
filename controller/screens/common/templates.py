"""Pages rendered from templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from controller.procedure.prompts import Texts
from controller.screens.common.sessions import Appearance, PageSession
from controller.screens.common.static_files import StaticFiles


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
        """Return the rendered page in the session's appearance."""
        looks = Appearance() if session is None else session.looks
        return HTMLResponse(self.text(template, session=session, looks=looks, **values), status)
