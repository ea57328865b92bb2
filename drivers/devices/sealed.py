"""Sealed values: a card that was read and is nobody's business yet.

    card = SealedCard(17)
    repr(card), str(card), f"{card:>9}"      # the same for every card
    card.open()                              # 17; the only way

A sealed value is equal to itself only, is hashed by what it is and not by what it holds, and is
not pickled, encoded or compared. So it may stand in an event, a queue, a log line or a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar, final

T = TypeVar("T")


class SealBroken(TypeError):
    """Someone tried to carry a sealed value away in another form."""


class Sealed(Generic[T]):
    """Holds a value and shows nothing of it until someone opens it on purpose."""

    # The value stands in a closure, not in an attribute: what walks over attributes (vars,
    # inspectors, encoders, crash reporters) meets a function.
    __slots__ = ("_open",)

    _open: Callable[[], T]

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_open", lambda: value)

    @final
    def open(self) -> T:
        """The value. From here on whoever called answers for it."""
        return self._open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str, /) -> str:
        # A format may ask for a number ("d"); the answer is the same for all.
        return repr(self)

    def __rich_repr__(self) -> list[Any]:
        return []

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise SealBroken(f"{self!r} does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise SealBroken(f"{self!r} does not change")

    def __copy__(self) -> Sealed[T]:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Sealed[T]:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SealBroken(f"{self!r} is not pickled")

    def __getstate__(self) -> NoReturn:
        raise SealBroken(f"{self!r} is not pickled")


@final
class SealedCard(Sealed[int]):
    """One card, 0 to 51, as the shoe read it."""

    __slots__ = ()
