"""What a device remembers of commands that must not be carried out twice."""

from __future__ import annotations

from firmware_protocol.device.behaviour import Key, Ways
from firmware_protocol.messages.codec import Reply
from firmware_protocol.messages.limits import RESULTS_KEPT


class Memory:
    """The last RESULTS_KEPT commands that are not idempotent, with their replies. In RAM: a start
    forgets them, a new session does not."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._replies: dict[Key, Reply] = {}

    def knows(self, key: Key) -> bool:
        return self._ways.remembers() and self._ways.memory_key(key) in self._replies

    def reply(self, key: Key) -> Reply:
        return self._replies[self._ways.memory_key(key)]

    def stale(self, key: Key) -> bool:
        """Whether this one, which is not remembered, is older than one that is."""
        boot, ident = self._ways.memory_key(key)
        newest = max((known for host, known in self._replies if host == boot), default=0)
        return ident < newest and self._ways.refuses_stale()

    def remember(self, key: Key, reply: Reply) -> None:
        self._replies[self._ways.memory_key(key)] = reply
        while len(self._replies) > RESULTS_KEPT:
            del self._replies[next(iter(self._replies))]
