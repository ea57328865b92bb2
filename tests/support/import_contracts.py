"""A contract for import-linter: packages with a door are imported through it only.

A package has a door if its `__init__` sets `__all__`. The packages are found in the import graph,
so a new one is checked as soon as it has a door.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import grimp
from importlinter import Contract, ContractCheck, fields, output


def has_door(init: Path) -> bool:
    """Return whether this `__init__.py` sets `__all__`."""
    if not init.is_file():
        return False
    tree = ast.parse(init.read_text("utf-8"))
    return any(
        isinstance(target, ast.Name) and target.id == "__all__"
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


class DoorsContract(Contract):
    """Modules of a package with a door are imported by that package only.

    Tests may import any module.
    """

    type_name = "doors"

    roots = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        bypasses = sorted(self._bypasses(graph))
        return ContractCheck(kept=not bypasses, metadata={"bypasses": bypasses})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported, line in check.metadata["bypasses"]:
            output.print_error(f"{importer} -> {imported} (l.{line})", bold=False)

    def _bypasses(self, graph: grimp.ImportGraph) -> Any:
        roots: tuple[str, ...] = tuple(self.roots)  # type: ignore[arg-type]
        packages = {
            name
            for name in graph.modules
            if name.split(".")[0] in roots
            and has_door(Path(name.replace(".", "/")) / "__init__.py")
        }
        for package in packages:
            for module in graph.find_children(package):
                for importer in graph.find_modules_that_directly_import(module):
                    outside = importer != package and not importer.startswith(f"{package}.")
                    if outside and importer.split(".")[0] in roots:
                        details = graph.get_import_details(importer=importer, imported=module)
                        yield importer, module, details[0]["line_number"]
