"""Package doors whose modules are imported on first use.

A command module lies in a package with a heavy door; `--help` needs the command module only.

    if TYPE_CHECKING:
        from package.module import Name
    else:
        __getattr__ = lazy_door(__name__, {"module": "Name OtherName"})
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazy_door(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """A module `__getattr__` for the names of `modules`, each imported once."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
