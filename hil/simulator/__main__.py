"""python -m hil.simulator shoe --dir D ...: `holecard sim` without installing the package."""

import sys

from controller.commands import run
from hil.simulator.cli import register

if __name__ == "__main__":
    sys.exit(run(["sim", *sys.argv[1:]], register))
