"""python -m hil.conform --profile shoe ...: `holecard conform` without installing it."""

import sys

from controller.commands import run
from hil.conform.runs import register

if __name__ == "__main__":
    sys.exit(run(["conform", *sys.argv[1:]], register))
