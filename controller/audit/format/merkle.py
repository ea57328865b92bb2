"""The RFC 6962 Merkle tree over the records, as roots of subtrees.

A tree of n leaves is stored as the roots of its complete subtrees, one for each set bit of n.
Adding a leaf costs about one hash, the root log2(n) hashes. The leaves themselves are not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

HASH_SIZE: Final = 32
EMPTY_ROOT: Final = sha256().digest()

Hash: TypeAlias = bytes
Block: TypeAlias = tuple[int, int]
"""A complete subtree: its first leaf and its level; it has 2 ** level leaves."""


def leaf_hash(data: bytes) -> Hash:
    return sha256(b"\x00" + data).digest()


def node_hash(left: Hash, right: Hash) -> Hash:
    return sha256(b"\x01" + left + right).digest()


class Span:
    """The leaves from `begin` up to `end` of a tree; a whole tree begins with leaf 0.

    It is stored as the roots of its largest complete subtrees, so it is independent of the leaves
    around it. Parts of a record are hashed in parallel and combined with `merged`.
    """

    __slots__ = ("_hashes", "begin", "end")

    def __init__(self, begin: int = 0) -> None:
        if begin < 0:
            raise ValueError(f"leaves from {begin} on; allowed: 0 or more")
        self.begin = begin
        self.end = begin
        """The leaf behind the last one; the size of a tree."""
        self._hashes: list[Hash] = []

    @classmethod
    def of(cls, begin: int, end: int, hashes: Sequence[Hash]) -> Span:
        """Restore a span from the roots of its largest complete subtrees, in order."""
        made = cls(begin)
        what = f"the leaves from {begin} up to {end}" if begin else f"a tree of {end} leaves"
        if end < begin:
            raise ValueError(f"{what}; allowed: up to {begin} or more")
        if len(hashes) != (count := sum(1 for _ in blocks(begin, end))):
            raise ValueError(f"{what}: {len(hashes)} hashes; allowed: {count}")
        try:
            _check_sizes(hashes)
        except ValueError as problem:
            raise ValueError(f"{what}: {problem}") from None
        made._hashes = list(hashes)
        made.end = end
        return made

    @property
    def hashes(self) -> tuple[Hash, ...]:
        """The roots of its largest complete subtrees, in the order of the leaves."""
        return tuple(self._hashes)

    def add(self, leaf: Hash) -> None:
        _check_sizes((leaf,))
        self._put(0, leaf)

    def grow(self, leaves: Sequence[Hash]) -> None:
        """Add many leaves level by level, which is faster than add() of each."""
        _check_sizes(leaves)
        hashes, at = self._hashes, self.end
        begin = self.begin
        """The first node of each level that is wholly in the span."""
        level = list(leaves)
        alone: list[Hash] = []
        """The unpaired last subtree of each level."""
        while level:
            if at & 1 and at > begin:
                level.insert(0, hashes.pop())
            elif at & 1:  # its left sibling is before the span
                hashes.append(level.pop(0))
                at += 1
            if len(level) & 1:
                alone.append(level.pop())
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
            at >>= 1
            begin = (begin + 1) >> 1
        hashes += reversed(alone)
        self.end += len(leaves)

    def copy(self) -> Span:
        return Span.of(self.begin, self.end, self._hashes)

    def root(self) -> Hash:
        """The hash of these leaves: the root of a tree, or that of a subtree for a proof."""
        room = self.begin & -self.begin
        if self.begin and self.end - self.begin > room:
            raise ValueError(
                f"the leaves from {self.begin} up to {self.end} are no subtree; "
                f"allowed: up to {self.begin + room}"
            )
        return folded(self._hashes)

    def _put(self, level: int, top: Hash) -> None:
        """Append a complete subtree, pairing it with those before it."""
        end = self.end + (1 << level)
        index = self.end >> level
        while index & 1 and (index - 1) << level >= self.begin:
            top = node_hash(self._hashes.pop(), top)
            index >>= 1
            level += 1
        self._hashes.append(top)
        self.end = end

    def __repr__(self) -> str:
        return f"Span({self.begin}, {self.end})"


def merged(left: Span, right: Span) -> Span:
    """A new span of two adjacent ones."""
    if left.end != right.begin:
        raise ValueError(f"{right!r} does not begin where {left!r} ends")
    both = left.copy()
    for (_, level), top in zip(blocks(right.begin, right.end), right.hashes, strict=True):
        both._put(level, top)
    return both


def blocks(begin: int, end: int) -> Iterator[Block]:
    """The largest complete subtrees of these leaves, in order."""
    while begin < end:
        level = (end - begin).bit_length() - 1
        if begin:
            level = min(level, (begin & -begin).bit_length() - 1)
        yield begin, level
        begin += 1 << level


def folded(hashes: Sequence[Hash]) -> Hash:
    """The root over complete subtrees, largest first."""
    if not hashes:
        return EMPTY_ROOT
    root = hashes[-1]
    for left in hashes[-2::-1]:
        root = node_hash(left, root)
    return root


def _check_sizes(hashes: Iterable[Hash]) -> None:
    for one in hashes:
        if len(one) != HASH_SIZE:
            raise ValueError(f"a hash of {len(one)} bytes; allowed: {HASH_SIZE}")


Range: TypeAlias = tuple[int, int]
"""The leaves of a subtree: from the first up to the one behind the last."""


def inclusion_ranges(index: int, size: int) -> tuple[Range, ...]:
    """The sibling subtrees on the path from a leaf to the root."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} of {size}; allowed: 0 or more, less than {size}")
    return tuple(reversed([beside for beside, _ in _down(index, size)]))


def consistency_ranges(old: int, new: int) -> tuple[Range, ...]:
    """The subtrees that both the old and the new tree consist of."""
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
    # The old tree ends with `at`. If it is all of `at`, the verifier has that root already.
    return tuple(reversed([*found, at] if at[0] else found))


def _down(index: int, size: int) -> Iterator[tuple[Range, Range]]:
    """The path from the root to a leaf: at each node the sibling subtree and the one descended
    into."""
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + (1 << (end - begin - 1).bit_length() - 1)
        left, right = (begin, middle), (middle, end)
        beside, (begin, end) = (right, left) if index < middle else (left, right)
        yield beside, (begin, end)


def check_inclusion(leaf: Hash, index: int, size: int, proof: Sequence[Hash], root: Hash) -> bool:
    """Verify an inclusion proof: `leaf` is at this index of the tree with this root."""
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
    """Verify a consistency proof: the tree of `new` leaves extends the one of `old` leaves."""
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
    """Skip levels in which the node has no left sibling."""
    while not at & 1 and at:
        at >>= 1
        last >>= 1
    return at, last


def _are_hashes(given: Iterable[object]) -> bool:
    return all(isinstance(one, bytes) and len(one) == HASH_SIZE for one in given)
