"""python -m hil.table --game mega ...: `holecard demo` where the package is not installed."""

import sys

from hil import commands
from hil.table.demo import register

if __name__ == "__main__":
    sys.exit(commands.run(register, "demo", sys.argv[1:]))
