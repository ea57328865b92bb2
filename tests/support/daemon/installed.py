"""The service file and the installation page."""

import re
from importlib.resources import files
from pathlib import Path

DEPLOY = Path(str(files("configs"))) / "deploy"
UNIT = (DEPLOY / "holecard@.service").read_text(encoding="utf-8")
PAGE = (DEPLOY / "INSTALL.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
