"""What an item of the conformance run can end with, besides well."""

from __future__ import annotations


class Finding(Exception):
    """The device does not keep a rule: what was sent, what was expected, and what came."""

    def __init__(self, sent: str, expected: str, came: str) -> None:
        super().__init__(sent, expected, came)
        self.sent = sent
        self.expected = expected
        self.came = came


class HandRefused(Finding):
    """The simulated device does not let a hand do what the item needs."""


class Lacking(Exception):
    """The item cannot be tried here: what it needs."""

    def __init__(self, needs: str) -> None:
        super().__init__(needs)
        self.needs = needs
