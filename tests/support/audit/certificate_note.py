"""A certificate of a table key."""

from controller.audit.format.notes import certificate
from tests.support.audit.tools.signers import (
    BOOT,
    BOOT_KEY,
    ORIGIN,
    TABLE_KEY,
)

KEY = BOOT_KEY.verifier.key
NOTE = certificate(ORIGIN, BOOT, KEY, 7, TABLE_KEY)
