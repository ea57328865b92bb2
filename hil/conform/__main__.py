"""python -m hil.conform --profile shoe ...: `holecard conform` where it is not installed."""

import sys

from hil import commands as by_module
from hil.conform.runs.cli import register

if __name__ == "__main__":
    sys.exit(by_module.run(register, "conform", sys.argv[1:]))
