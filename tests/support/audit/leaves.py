"""A Merkle tree of which all leaves are known: makes the proofs that the product checks."""

from collections.abc import Iterable

from controller.audit.format.merkle import (
    EMPTY_ROOT,
    Hash,
    Span,
    blocks,
    consistency_ranges,
    inclusion_ranges,
    node_hash,
)


class Leaves:
    """A whole Merkle tree in memory, for proofs of any of its leaves."""

    def __init__(self, hashes: Iterable[Hash]) -> None:
        level = list(hashes)
        self._levels = [level]
        while len(level) > 1:
            level = [node_hash(*pair) for pair in zip(level[::2], level[1::2], strict=False)]
            self._levels.append(level)

    def subtree(self, begin: int, end: int) -> Hash:
        return Span.of(
            begin, end, [self._levels[level][at >> level] for at, level in blocks(begin, end)]
        ).root()

    def root(self, size: int) -> Hash:
        return self.subtree(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int) -> tuple[Hash, ...]:
        return tuple(self.subtree(*one) for one in inclusion_ranges(index, size))

    def consistency(self, old: int, new: int) -> tuple[Hash, ...]:
        return tuple(self.subtree(*one) for one in consistency_ranges(old, new))
