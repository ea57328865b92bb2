"""What the clocks of two records that follow each other may say."""

from __future__ import annotations

from controller.audit.log.clock import STEP_US
from controller.audit.verify.facts import Tick


def clock_wrong(former: Tick, tick: Tick) -> str:
    """What the clocks of two records that follow each other cannot say; empty where they can."""
    told = tick.clock or former.clock
    if tick.utc < former.utc and not told:
        where = "" if tick.boot == former.boot else ", in another boot"
        return f"its time is before that of the record before it{where}, and no clock was set"
    if tick.boot != former.boot:
        return ""
    gone = tick.utc - former.utc
    ahead = gone - (tick.mono - former.mono) // 1000
    if abs(ahead) > STEP_US and not told:
        return f"its time left the pace by {ahead / 1e6:+.3f} s and no clock was set"
    return ""
