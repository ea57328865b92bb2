"""Merkle trees have the roots of RFC 6962; their proofs prove what they should and no more."""

import pickle
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree, verify_consistency, verify_inclusion

from controller.audit.format import merkle
from controller.audit.format.merkle import (
    EMPTY_ROOT,
    Span,
    check_consistency,
    check_inclusion,
    leaf_hash,
    merged,
    node_hash,
)
from tests.support.audit.leaves import Leaves
from tests.support.audit.record import growing

LEAVES = [leaf_hash(record) for record in growing.records(300)]


def span(begin: int, end: int) -> Span:
    made = Span(begin)
    for leaf in LEAVES[begin:end]:
        made.add(leaf)
    return made


def tree(size: int) -> Span:
    return span(0, size)


def parts(made: Span) -> tuple[int, int, tuple[bytes, ...]]:
    return made.begin, made.end, made.hashes


def test_the_example_of_rfc_6962() -> None:
    made = Span()
    assert made.root() == EMPTY_ROOT == growing.ROOTS[0]
    for size, record in enumerate(growing.RECORDS, 1):
        made.add(leaf_hash(record))
        assert (made.end, made.root()) == (size, growing.ROOTS[size])


def test_every_size_has_the_root_that_the_rfc_defines() -> None:
    made = Span()
    records = growing.records(130)
    for size in range(131):
        assert (made.root(), len(made.hashes)) == (growing.root(records[:size]), size.bit_count())
        made.add(LEAVES[size])


@given(st.integers(0, 130), st.integers(0, 130), st.lists(st.integers(0, 40), max_size=4))
def test_grow_is_equivalent_to_add(begin: int, width: int, steps: list[int]) -> None:
    end = begin + width
    made = span(begin, end)
    for step in steps:
        made.grow(LEAVES[end : end + step])
        end = min(end + step, len(LEAVES))
        assert parts(made) == parts(span(begin, end))


@given(st.lists(st.binary(max_size=40), max_size=200))
def test_pymerkle_has_the_same_roots(records: list[bytes]) -> None:
    theirs = InmemoryTree(algorithm="sha256")
    ours = Span()
    for record in records:
        theirs.append_entry(record)
        ours.add(leaf_hash(record))
        assert ours.root() == theirs.get_root()


@pytest.mark.parametrize(
    ("begin", "end"), [*((0, size) for size in (0, 1, 2, 3, 7, 8, 63, 64, 130)), (5, 6), (3, 100)]
)
def test_a_span_is_restored_from_its_hashes(begin: int, end: int) -> None:
    one = span(begin, end)
    for again in (Span.of(begin, end, one.hashes), pickle.loads(pickle.dumps(one)), one.copy()):
        again.grow(LEAVES[end:140])
        assert parts(again) == parts(span(begin, 140))
    assert parts(one) == parts(span(begin, end))


def test_the_hashes_of_a_span_are_its_own() -> None:
    given = list(tree(7).hashes)
    from_list = Span.of(0, 7, given)
    given.clear()
    assert from_list.root() == tree(7).root()


def test_the_largest_subtree_is_first() -> None:
    assert tree(5).hashes == (growing.root(growing.records(4)), LEAVES[4])


@pytest.mark.parametrize(
    ("begin", "end", "hashes", "what"),
    [
        (0, -1, 1, "a tree of -1 leaves; allowed: up to 0 or more"),
        (0, 0, 1, "a tree of 0 leaves: 1 hashes; allowed: 0"),
        (0, 6, 1, "a tree of 6 leaves: 1 hashes; allowed: 2"),
        (0, 6, 3, "a tree of 6 leaves: 3 hashes; allowed: 2"),
        (-1, 0, 0, "leaves from -1 on; allowed: 0 or more"),
        (3, 2, 0, "the leaves from 3 up to 2; allowed: up to 3 or more"),
        (3, 9, 1, "the leaves from 3 up to 9: 1 hashes; allowed: 3"),
    ],
)
def test_a_wrong_number_of_hashes_is_rejected(begin: int, end: int, hashes: int, what: str) -> None:
    with pytest.raises(ValueError, match=f"^{what}$"):
        Span.of(begin, end, LEAVES[:hashes])


@pytest.mark.parametrize("leaf", [b"", LEAVES[0][:31], LEAVES[0] + b"\0"])
@pytest.mark.parametrize("begin", [0, 1])
def test_an_invalid_hash_is_rejected_without_side_effects(leaf: bytes, begin: int) -> None:
    made = span(begin, 3)
    what = f"a hash of {len(leaf)} bytes; allowed: 32"
    for add in (made.add, lambda leaf: made.grow([*LEAVES[5:9], leaf])):
        with pytest.raises(ValueError, match=f"^{what}$"):
            add(leaf)
    with pytest.raises(ValueError, match=f": {what}$"):
        Span.of(begin, 3, [LEAVES[0], leaf])
    assert parts(made) == parts(span(begin, 3))


def test_spans_are_merged_at_every_split() -> None:
    spans = {(begin, end): span(begin, end) for end in range(41) for begin in range(end + 1)}
    known = {place: parts(one) for place, one in spans.items()}
    for begin, end in spans:
        for middle in range(begin, end + 1):
            assert parts(merged(spans[begin, middle], spans[middle, end])) == known[begin, end]
    assert {place: parts(one) for place, one in spans.items()} == known


@given(st.lists(st.integers(0, 300), max_size=8), st.randoms())
def test_spans_are_merged_in_any_order(cuts: list[int], order: Random) -> None:
    some = [span(begin, end) for begin, end in pairwise([0, *sorted(cuts), 300])]
    while len(some) > 1:
        at = order.randrange(len(some) - 1)
        some[at : at + 2] = [merged(some[at], some[at + 1])]
    assert some[0].root() == tree(300).root()


def test_a_span_takes_leaves_after_a_merge() -> None:
    both = merged(span(3, 9), span(9, 20))
    both.grow(LEAVES[20:50])
    assert merged(span(0, 3), both).root() == tree(50).root()


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


@pytest.mark.parametrize(("left", "right"), [((0, 3), (4, 5)), ((0, 3), (2, 5)), ((3, 5), (0, 3))])
def test_spans_that_are_not_adjacent_are_rejected(
    left: tuple[int, int], right: tuple[int, int]
) -> None:
    with pytest.raises(ValueError, match="does not begin where"):
        merged(span(*left), span(*right))


MAX_SIZE = 130
RECORDS = growing.records(MAX_SIZE)
WHOLE = Leaves([leaf_hash(record) for record in RECORDS])
ROOTS = [WHOLE.root(size) for size in range(MAX_SIZE + 1)]
LEAF = [leaf_hash(record) for record in RECORDS]
OTHER = leaf_hash(b"another record")

sizes = st.integers(1, (1 << 62) - 1)


Proof: TypeAlias = tuple[bytes, ...]


def hashes(text: str) -> Proof:
    return tuple(bytes.fromhex(text[at : at + 64]) for at in range(0, len(text), 64))


def tampered(proof: Proof) -> Iterator[Proof]:
    """Copies of the proof with one error each."""
    yield (*proof, OTHER)
    yield (OTHER, *proof)
    for at, one in enumerate(proof):
        before, behind = proof[:at], proof[at + 1 :]
        yield (*before, *behind)
        yield (*before, one, *proof[at:])
        for bit in (0, 255):
            yield (*before, flipped(one, bit), *behind)
        yield (*before, one[:31], *behind)
        yield (*before, one + b"\0", *behind)
        if behind:
            yield (*before, behind[0], one, *behind[1:])


def flipped(one: bytes, bit: int) -> bytes:
    return bytes(value ^ (at == bit // 8) << bit % 8 for at, value in enumerate(one))


@cache
def alike(width: int) -> bytes:
    """The root of a tree with identical leaves."""
    if width == 1:
        return OTHER
    left = 1 << (width - 1).bit_length() - 1
    return node_hash(alike(left), alike(width - left))


def all_alike(begin: int, end: int) -> bytes:
    return alike(end - begin)


def test_the_proofs_of_the_example_of_rfc_6962() -> None:
    leaves = Leaves(leaf_hash(record) for record in growing.RECORDS)
    for (index, size), text in growing.INCLUSION.items():
        proof = leaves.inclusion(index, size)
        assert proof == hashes(text)
        assert check_inclusion(
            leaf_hash(growing.RECORDS[index]), index, size, proof, growing.ROOTS[size]
        )
    for (old, new), text in growing.CONSISTENCY.items():
        proof = leaves.consistency(old, new)
        assert proof == hashes(text)
        assert check_consistency(old, new, proof, growing.ROOTS[old], growing.ROOTS[new])


@pytest.mark.parametrize("size", range(1, MAX_SIZE + 1))
def test_each_leaf_of_each_size_is_proved(size: int) -> None:
    assert ROOTS[size] == growing.root(RECORDS[:size])
    for index in range(size):
        proof = WHOLE.inclusion(index, size)
        assert len(proof) <= (size - 1).bit_length()
        assert check_inclusion(LEAF[index], index, size, proof, ROOTS[size])
        assert not check_inclusion(OTHER, index, size, proof, ROOTS[size])
        assert not check_inclusion(LEAF[index], index, size, proof, OTHER)
        assert not check_inclusion(LEAF[index], index ^ 1, size, proof, ROOTS[size])


@pytest.mark.parametrize("new", range(MAX_SIZE + 1))
def test_each_size_is_proved_to_grow_into_each(new: int) -> None:
    for old in range(new + 1):
        proof = WHOLE.consistency(old, new)
        assert check_consistency(old, new, proof, ROOTS[old], ROOTS[new])
        assert not check_consistency(old, new, proof, OTHER, ROOTS[new])
        # Every tree extends the empty tree.
        assert check_consistency(old, new, proof, ROOTS[old], OTHER) == (old == 0 < new)
        if 0 < old < new:
            assert not check_consistency(old, new, (), ROOTS[old], ROOTS[new])
            assert not check_consistency(old, new, proof, ROOTS[old - 1], ROOTS[new])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 31, 32, 33, 65, 100])
def test_proofs_are_as_the_rfc_defines_them(size: int) -> None:
    for at in range(size):
        assert WHOLE.inclusion(at, size) == growing.inclusion(at, RECORDS[:size])
        assert WHOLE.consistency(at + 1, size) == growing.consistency(at + 1, RECORDS[:size])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 21, 64, 130])
def test_tampered_proofs_are_rejected(size: int) -> None:
    tried = 0
    for at in range(size):
        for proof in tampered(WHOLE.inclusion(at, size)):
            assert not check_inclusion(LEAF[at], at, size, proof, ROOTS[size])
            tried += 1
        for proof in tampered(WHOLE.consistency(at + 1, size)):
            assert not check_consistency(at + 1, size, proof, ROOTS[at + 1], ROOTS[size])
            tried += 1
    for proof in tampered(()):
        assert not check_consistency(0, size, proof, EMPTY_ROOT, ROOTS[size])
    assert tried >= 4 * size


@pytest.mark.parametrize(("less", "more"), [(1, 2), (1, 3), (2, 4), (4, 8), (8, 13), (64, 130)])
def test_a_proof_of_another_size_is_rejected(less: int, more: int) -> None:
    """A proof that is too short or too long for its size, but leads to the given root."""
    for said, size in ((more, less), (less, more)):
        proof = WHOLE.inclusion(0, size)
        assert check_inclusion(LEAF[0], 0, size, proof, ROOTS[size])
        assert not check_inclusion(LEAF[0], 0, said, proof, ROOTS[size])
        grown = WHOLE.consistency(1, size)
        assert check_consistency(1, size, grown, ROOTS[1], ROOTS[size])
        assert not check_consistency(1, said, grown, ROOTS[1], ROOTS[size])


@pytest.mark.parametrize("half", [1, 2, 4, 8, 64])
def test_a_proof_of_a_subtree_is_rejected(half: int) -> None:
    """The right half of a tree looks like a tree of its own, one level higher."""
    both = 2 * half
    proof = WHOLE.inclusion(half, both)
    assert check_inclusion(LEAF[half], half, both, proof, ROOTS[both])
    assert not check_inclusion(LEAF[half], 0, half, proof, ROOTS[both])
    grown = WHOLE.consistency(both - 1, both)
    assert check_consistency(both - 1, both, grown, ROOTS[both - 1], ROOTS[both])
    assert not check_consistency(half - 1, half, grown, ROOTS[both - 1], ROOTS[both])


@given(st.integers(1, MAX_SIZE), st.integers(1, MAX_SIZE), st.integers(0, MAX_SIZE - 1), st.data())
def test_an_altered_record_is_detected(
    one: int, other: int, altered: int, data: st.DataObject
) -> None:
    """No proof from the altered leaves leads from the old root to the new one."""
    old, new = sorted((one, other))
    altered %= old
    others = Leaves([*LEAF[:altered], OTHER, *LEAF[altered + 1 :]])
    root = others.root(new)
    for source in (WHOLE, others):
        assert not check_consistency(old, new, source.consistency(old, new), ROOTS[old], root)
        assert not check_inclusion(
            LEAF[altered], altered, new, source.inclusion(altered, new), root
        )
    random = data.draw(st.lists(st.sampled_from([*LEAF, *ROOTS, root, OTHER]), max_size=9))
    assert not check_consistency(old, new, random, ROOTS[old], root)


@given(sizes, sizes)
def test_proofs_of_huge_trees(one: int, other: int) -> None:
    old, new = sorted((one, other))
    root = alike(new)
    proof = [all_alike(*one) for one in merkle.inclusion_ranges(old - 1, new)]
    assert check_inclusion(OTHER, old - 1, new, proof, root)
    grown = [all_alike(*one) for one in merkle.consistency_ranges(old, new)]
    assert check_consistency(old, new, grown, alike(old), root)
    assert len(grown) <= 2 * new.bit_length()


@given(sizes, sizes)
def test_ranges_are_subtrees_that_never_overlap(one: int, other: int) -> None:
    old, new = sorted((one, other))
    beside = merkle.inclusion_ranges(old - 1, new)
    assert [begin <= old - 1 < end for begin, end in beside] == [False] * len(beside)
    covered = sorted((*beside, (old - 1, old)))
    assert [begin for begin, _ in covered] == [0, *(end for _, end in covered[:-1])]
    assert covered[-1][1] == new
    grown = sorted(merkle.consistency_ranges(old, new))
    for begin, end in grown:
        assert begin == 0 or end - begin <= begin & -begin
        assert end <= old or begin >= old
    if grown:
        assert grown[-1][1] == new
        assert [begin for begin, _ in grown[1:]] == [end for _, end in grown[:-1]]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=150), st.data())
def test_pymerkle_makes_the_same_proofs(records: list[bytes], data: st.DataObject) -> None:
    theirs = InmemoryTree(algorithm="sha256")
    theirs.append_entries(records)
    ours = Leaves(leaf_hash(record) for record in records)
    new = data.draw(st.integers(1, len(records)))
    index = data.draw(st.integers(0, new - 1))
    proof = theirs.prove_inclusion(index + 1, new)
    assert proof.path == [leaf_hash(records[index]), *ours.inclusion(index, new)]
    verify_inclusion(leaf_hash(records[index]), ours.root(new), proof, index + 1, new)
    assert check_inclusion(proof.path[0], index, new, proof.path[1:], theirs.get_root(new))
    old = data.draw(st.integers(1, new))
    verify_consistency(ours.root(old), ours.root(new), theirs.prove_consistency(old, new), old, new)
    proof = ours.consistency(old, new)
    assert check_consistency(old, new, proof, theirs.get_root(old), theirs.get_root(new))


@pytest.mark.parametrize(("index", "size"), [(-1, 1), (0, 0), (1, 1), (8, 8), (9, 8), (0, -1)])
def test_a_missing_leaf_has_no_inclusion_proof(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=rf"^leaf {index} of {size}; allowed: "):
        WHOLE.inclusion(index, size)
    assert not check_inclusion(LEAF[0], index, size, (), LEAF[0])
    assert not check_inclusion(LEAF[0], index, size, WHOLE.inclusion(0, 8), ROOTS[8])


@pytest.mark.parametrize(("old", "new"), [(-1, 1), (2, 1), (1, 0), (-1, -1), (0, -1)])
def test_a_smaller_tree_has_no_consistency_proof(old: int, new: int) -> None:
    with pytest.raises(ValueError, match=rf"^a tree of {old} leaves grown to {new}; allowed: "):
        WHOLE.consistency(old, new)
    assert not check_consistency(old, new, (), ROOTS[1], ROOTS[1])
    assert not check_consistency(old, new, WHOLE.consistency(1, 2), ROOTS[2], ROOTS[1])


def test_the_empty_tree_has_one_root_only() -> None:
    assert check_consistency(0, 0, (), EMPTY_ROOT, EMPTY_ROOT)
    assert not check_consistency(0, 0, (), OTHER, OTHER)
    assert not check_consistency(0, 3, (), OTHER, ROOTS[3])


@pytest.mark.parametrize("wrong", [b"", LEAF[0][:31], LEAF[0] + b"\0", LEAF[0].hex(), None, 7])
def test_malformed_hashes_are_rejected(wrong: Any) -> None:
    """As a malformed file could contain it."""
    good = WHOLE.inclusion(2, 5)
    for leaf, root, first in ((wrong, ROOTS[5], good[0]), (LEAF[2], wrong, good[0])):
        assert not check_inclusion(leaf, 2, 5, (first, *good[1:]), root)
    assert not check_inclusion(LEAF[2], 2, 5, (wrong, *good[1:]), ROOTS[5])
    assert not check_consistency(3, 5, (wrong, *WHOLE.consistency(3, 5)[1:]), ROOTS[3], ROOTS[5])
    assert not check_consistency(5, 5, (), wrong, wrong)
