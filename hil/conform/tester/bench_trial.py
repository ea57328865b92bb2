"""What an item's function is: it returns when the rule is kept, and raises Finding or Lacking.

What it returns, if anything, is a remark for the report: what could not be looked at closely.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hil.conform.tester.bench import Bench

Trial: TypeAlias = Callable[[Bench], Awaitable[str | None]]
