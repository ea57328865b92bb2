"""What is known of the screen that a picture is made for.

Nothing else varies between screens, so that one picture serves all that watch.
"""

from __future__ import annotations

from msgspec import Struct


class Here(Struct, frozen=True):
    controls: bool
    """The dealer is signed in at this very screen."""
    tests: bool = False
    """A technician is."""
