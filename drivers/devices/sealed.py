"""Sealed values: a card that was read and must not be shown yet.

    card = SealedCard(17)
    repr(card), str(card), f"{card:>9}"      # the same for every card
    card.open()                              # 17; the only way

A sealed value is equal only to itself, is hashed by identity, and cannot be pickled, encoded or
compared. So it may be in an event, a queue, a log line or a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar, final

T = TypeVar("T")


class SealBroken(TypeError):
    """An attempt to change or to serialize a sealed value."""


class Sealed(Generic[T]):
    """Hides a value until open() is called."""

    # The value is in a closure, not in an attribute: code that walks over attributes (vars,
    # inspectors, encoders, crash reporters) finds a function.
    __slots__ = ("_open",)

    _open: Callable[[], T]

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_open", lambda: value)

    @final
    def open(self) -> T:
        """The value. The caller is responsible for it from now on."""
        return self._open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str, /) -> str:
        # Also for a number format ("d"): the text is the same for every value.
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
