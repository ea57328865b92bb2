"""Paths of the repository that tests use."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The folder of pyproject.toml."""
SCRIPT_FILES: Final = ROOT / "tests" / "scripts"
"""The scripted rounds."""
