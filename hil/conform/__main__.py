"""python -m hil.conform --profile shoe ...: `holecard conform` where it is not installed."""

import sys

from hil import commands
from hil.conform.runs import register

if __name__ == "__main__":
    sys.exit(commands.run(register, "conform", sys.argv[1:]))
