"""What an item of the conformance run can end with, besides well."""

from __future__ import annotations


class ItemFinding(Exception):
    """The device does not keep a rule: what was sent, what was expected, and what came."""

    def __init__(self, sent: str, expected: str, came: str) -> None:
        super().__init__(sent, expected, came)
        self.sent = sent
        self.expected = expected
        self.came = came


class ItemSkipped(Exception):
    """The item cannot be tried here: what it needs."""

    def __init__(self, needs: str) -> None:
        super().__init__(needs)
        self.needs = needs


class NotApplicable(ItemSkipped):
    """The rule is about something that this model does not have: nothing is left untried."""


class ItemBlocked(Exception):
    """Something stands in the way of the item, and says nothing about its rule."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class RequestDenied(ItemBlocked):
    """The device's state does not let a hand do what the item needs."""

    def __init__(self, verb: str, why: str) -> None:
        super().__init__(f"a hand could not '{verb}': {why}")


class RunAborted(Exception):
    """The run cannot go on: why."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
