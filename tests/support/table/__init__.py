"""Helpers for tests of the table; their assertions are explained as those of tests are."""

import pytest

pytest.register_assert_rewrite("tests.support.table.stories", "tests.support.table.simulated")
