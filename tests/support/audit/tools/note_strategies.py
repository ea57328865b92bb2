"""Texts, names and signatures that a note can hold, and text that only looks like one."""

from __future__ import annotations

from hypothesis import strategies as st

from controller.audit.format.notes import Signature

letters = st.characters(exclude_categories=["Cs", "Cc"])
texts = st.lists(st.text(letters, max_size=12), min_size=1, max_size=6).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)
names = st.text(letters, min_size=1, max_size=12).filter(
    lambda name: "+" not in name and not any(one.isspace() for one in name)
)
signatures = st.builds(
    Signature, names, st.binary(min_size=4, max_size=4), st.binary(min_size=1, max_size=80)
)
close = st.text("— +=\n\t09aAzZ/é\ud800\u2028\0", max_size=60)
"""Text that is not far from a note."""
