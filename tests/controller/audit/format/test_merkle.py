"""Merkle trees, grown leaf by leaf or merged from spans, have the roots of RFC 6962."""

from __future__ import annotations

import pickle
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from controller.audit.format.merkle import EMPTY_ROOT, Frontier, Span, leaf_hash, merged, node_hash
from tests.support.audit.record import growing

LEAVES = [leaf_hash(record) for record in growing.records(300)]


def tree(size: int) -> Frontier:
    made = Frontier()
    for leaf in LEAVES[:size]:
        made.add(leaf)
    return made


def span(begin: int, end: int) -> Span:
    made = Span(begin)
    for leaf in LEAVES[begin:end]:
        made.add(leaf)
    return made


def test_the_example_of_rfc_6962() -> None:
    made = Frontier()
    assert made.root() == EMPTY_ROOT == growing.ROOTS[0]
    for size, record in enumerate(growing.RECORDS, 1):
        made.add(leaf_hash(record))
        assert (made.size, made.root()) == (size, growing.ROOTS[size])


def test_every_size_has_the_root_that_the_rfc_defines() -> None:
    made = Frontier()
    records = growing.records(130)
    for size in range(131):
        assert made.root() == growing.root(records[:size])
        assert len(made.hashes) == size.bit_count()
        made.add(LEAVES[size])


@given(st.integers(0, 130), st.lists(st.integers(0, 40), max_size=4))
def test_grow_is_equivalent_to_add(size: int, steps: list[int]) -> None:
    made = tree(size)
    for step in steps:
        made.grow(LEAVES[size : size + step])
        size += step
        assert (made.size, made.hashes) == (size, tree(size).hashes)


def test_an_invalid_leaf_leaves_the_tree_unchanged() -> None:
    made = tree(5)
    with pytest.raises(ValueError, match="a hash of 31 bytes"):
        made.grow([*LEAVES[5:9], bytes(31)])
    assert (made.size, made.hashes) == (5, tree(5).hashes)


@given(st.lists(st.binary(max_size=40), max_size=200))
def test_pymerkle_has_the_same_roots(records: list[bytes]) -> None:
    theirs = InmemoryTree(algorithm="sha256")
    ours = Frontier()
    for record in records:
        theirs.append_entry(record)
        ours.add(leaf_hash(record))
    assert ours.root() == theirs.get_root()
    half = Frontier()
    for record in records[: len(records) // 2]:
        half.add(leaf_hash(record))
    assert half.root() == theirs.get_root(half.size)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 63, 64, 130])
def test_a_tree_is_restored_from_its_hashes(size: int) -> None:
    again = Frontier.of(size, tree(size).hashes)
    for leaf in LEAVES[size:140]:
        again.add(leaf)
    assert (again.size, again.hashes, again.root()) == (140, tree(140).hashes, tree(140).root())


def test_a_copy_is_independent() -> None:
    one = tree(7)
    other = one.copy()
    other.add(LEAVES[7])
    assert (one.size, one.root()) == (7, tree(7).root())
    assert (other.size, other.root()) == (8, tree(8).root())
    given = list(one.hashes)
    from_list = Frontier.of(7, given)
    given.clear()
    assert from_list.root() == one.root()


def test_the_largest_subtree_is_first() -> None:
    assert tree(5).hashes == (growing.root(growing.records(4)), LEAVES[4])


@pytest.mark.parametrize(
    ("size", "hashes", "what"),
    [
        (-1, 1, "a tree of -1 leaves; allowed: 0 or more"),
        (0, 1, "a tree of 0 leaves: 1 hashes; allowed: 0"),
        (6, 1, "a tree of 6 leaves: 1 hashes; allowed: 2"),
        (6, 3, "a tree of 6 leaves: 3 hashes; allowed: 2"),
    ],
)
def test_a_wrong_number_of_hashes_is_rejected(size: int, hashes: int, what: str) -> None:
    with pytest.raises(ValueError, match=f"^{what}$"):
        Frontier.of(size, LEAVES[:hashes])


@pytest.mark.parametrize("leaf", [b"", LEAVES[0][:31], LEAVES[0] + b"\0"])
def test_an_invalid_hash_is_rejected_without_side_effects(leaf: bytes) -> None:
    made = tree(3)
    part = span(1, 3)
    what = f"a hash of {len(leaf)} bytes; allowed: 32"
    for adds in (made.add, part.add):
        with pytest.raises(ValueError, match=f"^{what}$"):
            adds(leaf)
    with pytest.raises(ValueError, match=f": {what}$"):
        Frontier.of(3, [LEAVES[0], leaf])
    assert (made.size, made.root()) == (3, tree(3).root())
    assert (part.end, part.hashes) == (3, span(1, 3).hashes)


def test_a_span_from_the_first_leaf_on_is_a_tree() -> None:
    for size in range(131):
        part = span(0, size)
        assert (part.frontier().size, part.frontier().hashes) == (size, tree(size).hashes)
        assert part.root() == tree(size).root()


def test_spans_are_merged_at_every_split() -> None:
    for end in range(41):
        for begin in range(end + 1):
            whole = span(begin, end).hashes
            for middle in range(begin, end + 1):
                left, right = span(begin, middle), span(middle, end)
                both = merged(left, right)
                assert (both.begin, both.end, both.hashes) == (begin, end, whole)
                assert left.hashes == span(begin, middle).hashes
                assert right.hashes == span(middle, end).hashes


@given(st.lists(st.integers(0, 300), max_size=8), st.randoms())
def test_spans_are_merged_in_any_order(cuts: list[int], order: Random) -> None:
    edges = [0, *sorted(cuts), 300]
    parts = [span(begin, end) for begin, end in pairwise(edges)]
    while len(parts) > 1:
        at = order.randrange(len(parts) - 1)
        parts[at : at + 2] = [merged(parts[at], parts[at + 1])]
    assert parts[0].frontier().root() == tree(300).root()


def test_a_span_takes_leaves_after_a_merge() -> None:
    both = merged(span(3, 9), span(9, 20))
    for leaf in LEAVES[20:50]:
        both.add(leaf)
    assert merged(span(0, 3), both).frontier().root() == tree(50).root()


def test_a_span_is_pickled() -> None:
    for begin, end in ((0, 0), (5, 5), (5, 6), (3, 100), (0, 77)):
        sent = pickle.loads(pickle.dumps(span(begin, end)))
        again = Span.of(begin, end, span(begin, end).hashes)
        for one in (sent, again):
            one.add(LEAVES[end])
            assert (one.begin, one.end) == (begin, end + 1)
            assert one.hashes == span(begin, end + 1).hashes


def test_a_frontier_is_merged_with_a_span() -> None:
    before = tree(37)
    whole = merged(Span.of(0, before.size, before.hashes), span(37, 211))
    assert whole.frontier().hashes == tree(211).hashes


def test_the_hash_of_a_subtree() -> None:
    assert span(4, 6).root() == node_hash(LEAVES[4], LEAVES[5])
    assert span(4, 7).root() == growing.root(growing.records(7)[4:])
    assert span(8, 16).root() == growing.root(growing.records(16)[8:])


@pytest.mark.parametrize(
    ("begin", "end", "allowed"), [(1, 3, 2), (4, 9, 8), (6, 9, 8), (96, 129, 128)]
)
def test_only_subtrees_have_a_hash(begin: int, end: int, allowed: int) -> None:
    what = f"the leaves from {begin} up to {end} are no subtree; allowed: up to {allowed}"
    with pytest.raises(ValueError, match=f"^{what}$"):
        span(begin, end).root()


def test_spans_that_are_not_adjacent_are_rejected() -> None:
    for left, right in (
        (span(0, 3), span(4, 5)),
        (span(0, 3), span(2, 5)),
        (span(3, 5), span(0, 3)),
    ):
        with pytest.raises(ValueError, match="does not begin where"):
            merged(left, right)
    with pytest.raises(ValueError, match=r"^leaves from 1 on are no tree; allowed: from 0 on$"):
        span(1, 2).frontier()
    with pytest.raises(ValueError, match=r"^leaves from -1 on; allowed: 0 or more$"):
        Span(-1)
    with pytest.raises(ValueError, match=r"^the leaves from 3 up to 2; allowed: up to 3 or more$"):
        Span.of(3, 2, [])
    with pytest.raises(ValueError, match=r"^the leaves from 3 up to 9: 1 hashes; allowed: 3$"):
        Span.of(3, 9, LEAVES[:1])
