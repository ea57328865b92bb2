"""The exceptions that end an item without success."""

from __future__ import annotations


class ItemFinding(Exception):
    """The device violates a rule: what was sent, what was expected, and what came."""

    def __init__(self, sent: str, expected: str, came: str) -> None:
        super().__init__(sent, expected, came)
        self.sent = sent
        self.expected = expected
        self.came = came


class ItemSkipped(Exception):
    """The item cannot be run here: what it needs."""

    def __init__(self, needs: str) -> None:
        super().__init__(needs)
        self.needs = needs


class NotApplicable(ItemSkipped):
    """The rule does not apply to this model, so that nothing is left untested."""


class ItemBlocked(Exception):
    """An obstacle that is independent of the rule."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class RequestDenied(ItemBlocked):
    """The state of the device does not allow a request that the item needs."""

    def __init__(self, verb: str, why: str) -> None:
        super().__init__(f"the request '{verb}' was denied: {why}")


class RunAborted(Exception):
    """The run cannot continue."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
