"""Which hold is which: two that look alike are two cases, and a signature is for one of them."""

from __future__ import annotations

from msgspec import Struct

from controller.procedure.model.state import Hold


class Cases(Struct, frozen=True):
    """The holds that are on, each with what it is called."""

    holds: tuple[Hold, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def top(self) -> str:
        """The one that is ruled on; empty where nothing is held."""
        return self.names[-1] if self.names else ""

    def after(self, holds: tuple[Hold, ...], seq: int) -> Cases:
        """With those that are on after this entry of the record. A hold that was touched is
        another case: what was signed for is not what stands there now."""
        same = 0
        for old, new in zip(self.holds, holds, strict=False):
            if old is not new:
                break
            same += 1
        names = (_name(seq, depth) for depth in range(same, len(holds)))
        return Cases(holds, (*self.names[:same], *names))


def _name(seq: int, depth: int) -> str:
    """By the entry that brought it; several may come with one."""
    return f"hold {seq}" if depth == 0 else f"hold {seq} on {depth}"
