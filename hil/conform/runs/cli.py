"""check a device against the items of PROTOCOL.md"""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

from controller.commands import Subparsers, add_command, help_text
from firmware_protocol.conformance import Profile

_NOTES: Final = """\
It is a host of its own that violates rules on purpose: no other program may use the port. It
acknowledges the records of the device, moves it as the items require, and pairs it again if it can
operate the service switch. Do not use it on a device of a table.

Items that need more than the cable are skipped without an operator: a person (--ask), or the
control socket of a simulated device (--control). A simulated device is also paired if necessary,
and restored first from the state that an earlier run has left: its power is cut, its service switch
turned off, a button released, a shuffle ended, a full ring acknowledged.

For a device that is not paired, the items of frames and of HELLO (FR, HE) and PA-1 are run, which
need no keys; HE-3 ends where it would need some. The other items are not run.

TAP-1 compares lengths, not timing: at a port the line and this machine distort it. This command
does not find a card that is visible in less than 40 ms of timing.

Keys are in the directory of --keys, else of $HOLECARD_KEYS, else in ~/.config/holecard/keys, as for
`holecard devices`.

Each item ends with PASS, FAIL, SKIP (it needs an operator) or UNTRIED (it was prevented: the device
is not paired, a request was denied, the cable was pulled).

Exit codes:
  0    all passed
  1    some failed
  2    wrong arguments, and no item was run; or the report cannot be written
  3    incomplete: none failed, but some were skipped or not tried, or all were
  130  interrupted
A rule that does not apply to the model (SH-5 without GATE) is skipped and leaves nothing
incomplete. If an operator for all items is not available, list the items to run with --only."""


def register(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "conform",
        "check a device against the items of PROTOCOL.md",
        "hil.conform.runs.command:conform",
        description="Runs the items of firmware_protocol/PROTOCOL.md on one device.",
        epilog=help_text(
            (
                "conform --profile shoe --port /dev/ttyUSB0 --keys keys --ask",
                "conform --profile shuffler --port usb:SF-0001 --keys keys --junit report.xml",
                "conform --profile station --port run/station/port --control run/station/control",
            ),
            _NOTES,
        ),
        json=True,
    )
    parser.add_argument("--profile", required=True, choices=get_args(Profile))
    parser.add_argument(
        "--port", required=True, help="/dev/..., adapter:SERIAL, usb:SERIAL or usb+sim=DIR:SERIAL"
    )
    parser.add_argument("--keys", type=Path, metavar="DIR", help="the host's key store")
    parser.add_argument("--host-key", type=Path, metavar="FILE", help="private key, 64 hex digits")
    parser.add_argument("--device-key", metavar="HEX", help="the device's public key")
    parser.add_argument("--control", type=Path, metavar="SOCKET", help="of a simulated device")
    parser.add_argument("--ask", action="store_true", help="ask a person to draw, press and look")
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="ID", help="run only these items"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the noise; else random")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML too")
