"""Generates the golden vectors of the newest version. Those of a released one never change.

    python -m firmware_protocol.vectors.make          list the files that differ; exit code 1 if any
    python -m firmware_protocol.vectors.make --write  write them, unless the version is released

If a released vector and the code disagree, the code is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from firmware_protocol.generate import load_catalogue
from firmware_protocol.vectors import parts

FOLDER: Final = Path(__file__).parent


def made() -> dict[str, str]:
    """Returns the name and text of each file of the newest version."""
    built = parts.build(load_catalogue())
    return {f"{name}.json": _text(data) for name, data in built.items()}


def _text(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def main(arguments: Sequence[str]) -> int:
    version = load_catalogue().versions[-1]
    folder = FOLDER / f"v{version.number}"
    different = [
        name
        for name, text in made().items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text
    ]
    for name in different:
        sys.stdout.write(f"{folder.name}/{name}: differs\n")
    if not different:
        return 0
    if list(arguments) != ["--write"]:
        return 1
    if version.released:
        sys.stderr.write(f"version {version.number} is released: its vectors stay as they are\n")
        return 1
    folder.mkdir(exist_ok=True)
    texts = made()
    for name in different:
        (folder / name).write_text(texts[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
