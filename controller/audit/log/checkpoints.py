"""What a boot signs: its certificate, and checkpoints over what the disk gives back.

Before anything is signed, all that was written since the last signature is read from the disk
again and hashed on a way of its own: a signature over what memory believes would bind the table to
a record that is not there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import Damaged
from controller.audit.files.disk import Back
from controller.audit.format.certificates import TABLE_KEY, certificate
from controller.audit.format.merkle import Frontier
from controller.audit.format.notes import Checkpoint, SigningKey, signed
from controller.audit.format.segments import segment_file
from controller.audit.read.reader import ASK, Where
from controller.audit.read.scan import scan


def table_name(origin: str) -> str:
    """The name of the table's key."""
    return f"{origin}{TABLE_KEY}"


class Signer:
    """The key of one boot. It exists here only, and ends with the process."""

    def __init__(self, record: Path, origin: str, frontier: Frontier) -> None:
        self._record = record
        self._origin = origin
        self._key = SigningKey(origin, Ed25519PrivateKey.generate())
        self._tree = frontier.copy()
        """Of what was read back; never fed from memory."""
        self._back: Back | None = None
        self._number = 0
        self._at = 0

    def certificate(self, boot: str, seq: int, table_key: Ed25519PrivateKey) -> str:
        key = SigningKey(table_name(self._origin), table_key)
        return certificate(self._origin, boot, self._key.verifier.key, seq, key)

    @property
    def way(self) -> Literal["direct", "cached"]:
        return "direct" if self._back is None else self._back.way

    def begin(self, number: int, at: int) -> None:
        """From here on in segment `number`."""
        self.close()
        self._back = Back(segment_file(self._record, number))
        self._number, self._at = number, at

    def read_back(self, end: int, before: Where, after: Where) -> None:
        """What was written from where it last read up to `end`, which led from `before` to
        `after`. Damaged if the disk gives anything else."""
        assert self._back is not None
        found = scan(self._back.read(self._at, end), 0, before)
        self._tree.grow(found.leaves)
        if found.where != after:
            file = segment_file(self._record, self._number)
            seq = found.where.seq
            what = f"the disk gives back something else than was written after seq {seq}"
            raise Damaged(file, what, ASK)
        self._at = end

    def checkpoint(self, tree: Frontier) -> str:
        """The signed note over the tree, which must be the one that was read back."""
        root = tree.root()
        if (tree.size, root) != (self._tree.size, self._tree.root()):
            what = f"the tree of {self._tree.size} records on the disk is not the one in memory"
            raise Damaged(self._record, what, ASK)
        text = Checkpoint(self._origin, tree.size, root).text()
        return signed(text, self._key.sign(text))

    def close(self) -> None:
        back, self._back = self._back, None
        if back is not None:
            back.close()
