"""Long runs with a target of their own: `make campaign`."""

import os
from typing import Final

SHARE: Final = int(os.environ.get("HOLECARD_CAMPAIGN_SHARE", "1"))
"""One in so many is tried, of what is the same again and again; 1: all."""
