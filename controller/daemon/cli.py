"""`holecard serve`: declares the command that serves one table in the foreground."""

from __future__ import annotations

from typing import Final

from controller.commands import Subparsers, add_command, help_text

STOP_WITHIN: Final = 40.0
"""Seconds from the first signal until the process is ended; the record may need most of them."""
NOTES: Final = f"""\
It runs in the foreground. Once the record is open, the devices are being searched for and the API
answers, it prints one line: ready: TABLE at SOCKET, http://127.0.0.1:PORT, screens
http://127.0.0.1:PORT/. Log lines go to stderr, as JSON unless that is a terminal. A service manager
gets READY=1, WATCHDOG=1, STATUS=... and STOPPING=1; configs/deploy has a unit for systemd, and
INSTALL.md.

With [screens] in the table file it serves pages to browsers: the dealer's console at
http://127.0.0.1:PORT/, which anyone on this machine can watch and where the dealer signs in, and
surveillance at http://127.0.0.1:PORT/review/, by badge and PIN. Other machines are served only
with `listen`, `certificate` and `key`.

SIGTERM or SIGINT shuts it down: new requests are rejected, people are signed out, lamps and locks
are made safe, and the record is closed. That takes {STOP_WITHIN:.0f} s at most. A signal during the
start does the same; before anything has been opened, it ends at once. A second signal ends it at
once. In every case the next start continues where the record ends.

It does not start if the machine's clock is more than a minute before the record's last entry: set
the clock. If the clock is right now, and was wrong before, two people confirm that, once, with
--believe-clock; the record stores their names.

It does not run as root, unless --allow-root is given: in a container that has no other user. Its
memory, with keys and cards that lie face down, is closed to debuggers of the same user and is in
no core dump. With --debuggable it is open to them, and the record says so.
"""


def register(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "serve",
        "serve a table",
        "controller.daemon.command:run",
        description="Serves a table: its devices, its record, its people and its control API.",
        epilog=help_text(
            [
                "serve tables/blackjack-1.toml",
                "serve tables/blackjack-1.toml --believe-clock --by Ann --and Bo",
            ],
            NOTES,
            {
                0: "shut down in order",
                1: "the record is damaged or not valid",
                2: "table file, keys, people or clock are not usable, a port or the record is in "
                "use, or it is the record of a different table",
                70: "a fault of this program",
                74: "the record cannot be written, or did not close in time",
                130: "ended at once, by a second signal",
            },
        ),
    )
    parser.add_argument("config", metavar="CONFIG", help="the table file")
    parser.add_argument(
        "--believe-clock",
        action="store_true",
        help="start although the record's last entry is later than the clock",
    )
    parser.add_argument(
        "--allow-root", action="store_true", help="run as root, in a container without users"
    )
    parser.add_argument(
        "--debuggable",
        action="store_true",
        help="let debuggers of the same user read this process; recorded",
    )
    parser.add_argument("--by", metavar="NAME", help="confirms that the clock is right")
    parser.add_argument("--and", dest="second", metavar="NAME", help="the second person")
