"""Generates the Python codec, c/tablelink_messages.h and PROTOCOL.md from messages.toml.

python -m firmware_protocol.generate --check     list stale files; exit code 1 if there are any
python -m firmware_protocol.generate --write     write stale files
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from firmware_protocol.generate import catalogue as catalogues
from firmware_protocol.generate import emit_c, emit_page, emit_python
from firmware_protocol.generate.catalogue import Catalogue, CatalogueError

PACKAGE: Final = Path(__file__).parents[1]
EXIT_STALE: Final = 1
EXIT_USAGE: Final = 2


def generated(catalogue: Catalogue) -> dict[str, str]:
    """Returns the generated files: path in the package and text."""
    return {
        **emit_python.files(catalogue),
        "c/tablelink_messages.h": emit_c.header(catalogue),
        "PROTOCOL.md": emit_page.page(catalogue),
    }


def stale(package: Path = PACKAGE) -> dict[str, str]:
    """Returns the path and the expected text of each stale file. Raises CatalogueError if
    messages.toml is invalid.
    """
    catalogue = catalogues.parse_catalogue((package / catalogues.FILE).read_text(encoding="utf-8"))
    out = {}
    for name, text in generated(catalogue).items():
        file = package / name
        if not file.is_file() or file.read_bytes() != text.encode():
            out[name] = text
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m firmware_protocol.generate",
        description="Generates the codec, the C header and PROTOCOL.md from messages.toml.",
        epilog="Exit codes: 0 fresh or written; 1 a file is stale; 2 messages.toml is invalid.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="list the stale files")
    what.add_argument("--write", action="store_true", help="write the stale files")
    chosen = parser.parse_args(arguments)
    try:
        files = stale()
    except CatalogueError as problem:
        print(problem, file=sys.stderr)
        return EXIT_USAGE
    for name, text in files.items():
        if chosen.write:
            (PACKAGE / name).write_text(text, encoding="utf-8")
        print(f"firmware_protocol/{name}: {'written' if chosen.write else 'is stale'}")
    if chosen.check and files:
        print("generate them: python -m firmware_protocol.generate --write", file=sys.stderr)
        return EXIT_STALE
    return 0


if __name__ == "__main__":
    sys.exit(main())
