"""python -m hil.table --game mega ...: `holecard demo` where the package is not installed."""

import sys

from controller.commands import run
from hil.table.demo import register

if __name__ == "__main__":
    sys.exit(run(["demo", *sys.argv[1:]], register))
