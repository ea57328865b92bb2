"""python -m hil.simulator shoe --dir D ...: `holecard sim` where the package is not installed."""

import sys

from hil import commands
from hil.simulator.cli import register

if __name__ == "__main__":
    sys.exit(commands.run(register, "sim", sys.argv[1:]))
