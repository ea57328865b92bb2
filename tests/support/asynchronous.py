"""Tests that are coroutines: decorators that run each in an event loop of its own, steps that are
awaited in turn, and what raises when it is awaited."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pytest

from tests.support.drivers.simulated import simulate

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


async def in_turn(*steps: Coroutine[Any, Any, object]) -> None:
    """Await one after the other: the steps of a story, whose arguments do not depend on what the
    steps before come to. Those after one that fails are never begun."""
    for number, step in enumerate(steps, 1):
        try:
            await step
        except BaseException as problem:
            problem.add_note(f"in step {number} of {len(steps)}")
            for other in steps[number:]:
                other.close()
            raise


async def raised(
    kind: type[E] | tuple[type[E], ...], step: Awaitable[object], match: str | None = None
) -> E:
    """Await what raises this, and return the exception."""
    with pytest.raises(kind, match=match) as caught:
        await step
    return caught.value


def simulated(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test in simulated time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        simulate(test(*args, **kwargs))

    return run


def simulated_in(
    place: Callable[Concatenate[Path, Q], AbstractAsyncContextManager[T]],
    *given: Q.args,
    **options: Q.kwargs,
) -> Callable[[Callable[Concatenate[T, P], Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Run the test in simulated time, in this place, which is made in the test's folder: its first
    argument is what the place gives. The arguments are those of the place after the folder."""

    def decorate(
        test: Callable[Concatenate[T, P], Coroutine[Any, Any, None]],
    ) -> Callable[..., None]:
        @wraps(test)
        def run(tmp_path: Path, *args: P.args, **kwargs: P.kwargs) -> None:
            async def main() -> None:
                async with place(tmp_path, *given, **options) as made:
                    await test(made, *args, **kwargs)

            simulate(main())

        folder = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        others = [*inspect.signature(test).parameters.values()][1:]
        run.__signature__ = inspect.Signature([folder, *others])  # type: ignore[attr-defined]
        return run

    return decorate


def asynchronous(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test in real time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
