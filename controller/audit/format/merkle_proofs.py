"""Proofs that a record is in a tree, and that a tree only grew: RFC 6962, section 2.1; RFC 9162.

Leaves are counted from 0: record 1 is leaf 0. A proof is the hashes of some subtrees, and
`inclusion_ranges` and `consistency_ranges` say of which. So whoever makes proofs may read the
leaves once, from the first to the last, and hold no more than a `tree.Span` for each range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from controller.audit.format.merkle import EMPTY_ROOT, HASH_SIZE, Hash, Span, blocks, node_hash

Range: TypeAlias = tuple[int, int]
"""The leaves of a subtree: the first, and the one behind the last."""
Subtree: TypeAlias = Callable[[int, int], Hash]
"""The hash of the subtree over the leaves from one up to another."""
Proof: TypeAlias = tuple[Hash, ...]


def inclusion(subtree: Subtree, index: int, size: int) -> Proof:
    """That a leaf is in the tree of so many leaves, at this place."""
    return tuple(subtree(begin, end) for begin, end in inclusion_ranges(index, size))


def consistency(subtree: Subtree, old: int, new: int) -> Proof:
    """That the tree of `new` leaves is the one of `old` leaves, grown."""
    return tuple(subtree(begin, end) for begin, end in consistency_ranges(old, new))


def inclusion_ranges(index: int, size: int) -> tuple[Range, ...]:
    """The subtrees beside the way from a leaf up to the root."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} of {size}; allowed: 0 or more, less than {size}")
    return tuple(reversed([beside for beside, _ in _down(index, size)]))


def consistency_ranges(old: int, new: int) -> tuple[Range, ...]:
    """The subtrees that make up both the old tree and the new one."""
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {old} leaves grown to {new}; allowed: 0 to {new}")
    if old in (0, new):
        return ()
    found = []
    at = (0, new)
    for beside, at in _down(old - 1, new):
        found.append(beside)
        if at[1] == old:
            break
    # The old tree ends where `at` does. Where it is all of `at`, who checks has its root.
    return tuple(reversed([*found, at] if at[0] else found))


def _down(index: int, size: int) -> Iterator[tuple[Range, Range]]:
    """From the root down to a leaf: at each turn the subtree left aside, and the one gone into."""
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + (1 << (end - begin - 1).bit_length() - 1)
        left, right = (begin, middle), (middle, end)
        beside, (begin, end) = (right, left) if index < middle else (left, right)
        yield beside, (begin, end)


def check_inclusion(leaf: Hash, index: int, size: int, proof: Sequence[Hash], root: Hash) -> bool:
    """Whether the proof shows that this leaf hash stands there in the tree with this root."""
    if not 0 <= index < size or not _are_hashes((leaf, root, *proof)):
        return False
    at, last = index, size - 1
    found = leaf
    for beside in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node_hash(beside, found)
            at, last = _up_while_alone(at, last)
        else:
            found = node_hash(found, beside)
        at >>= 1
        last >>= 1
    return last == 0 and found == root


def check_consistency(
    old: int, new: int, proof: Sequence[Hash], old_root: Hash, new_root: Hash
) -> bool:
    """Whether the proof shows that the tree of `old` leaves grew into the one of `new`."""
    if not 0 <= old <= new or not _are_hashes((old_root, new_root, *proof)):
        return False
    if old == new:
        return not proof and old_root == new_root and (old > 0 or old_root == EMPTY_ROOT)
    if old == 0:
        return not proof and old_root == EMPTY_ROOT
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at >>= 1
        last >>= 1
    old_found = new_found = path[0]
    for beside in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old_found = node_hash(beside, old_found)
            new_found = node_hash(beside, new_found)
            at, last = _up_while_alone(at, last)
        else:
            new_found = node_hash(new_found, beside)
        at >>= 1
        last >>= 1
    return last == 0 and old_found == old_root and new_found == new_root


def _up_while_alone(at: int, last: int) -> tuple[int, int]:
    """Up to where there is something on the left: at a ragged end, levels have no pair."""
    while not at & 1 and at:
        at >>= 1
        last >>= 1
    return at, last


def _are_hashes(given: Iterable[object]) -> bool:
    return all(isinstance(one, bytes) and len(one) == HASH_SIZE for one in given)


class Leaves:
    """All leaves of a tree with what is above them, for as many proofs as one likes."""

    def __init__(self, hashes: Iterable[Hash]) -> None:
        level = list(hashes)
        if not _are_hashes(level):
            raise ValueError(f"leaves that are no hashes; allowed: {HASH_SIZE} bytes each")
        self._levels = [level]
        while len(level) > 1:
            level = [node_hash(*pair) for pair in zip(level[::2], level[1::2], strict=False)]
            self._levels.append(level)

    @property
    def size(self) -> int:
        return len(self._levels[0])

    def subtree(self, begin: int, end: int) -> Hash:
        if not 0 <= begin < end <= self.size:
            raise ValueError(f"leaves from {begin} up to {end}; allowed: within 0 and {self.size}")
        whole = [self._levels[level][at >> level] for at, level in blocks(begin, end)]
        return Span.of(begin, end, whole).root()

    def root(self, size: int) -> Hash:
        """Of the tree of the first so many leaves."""
        return self.subtree(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int) -> Proof:
        return inclusion(self.subtree, index, size)

    def consistency(self, old: int, new: int) -> Proof:
        return consistency(self.subtree, old, new)
