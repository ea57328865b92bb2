"""What a command of the controller says."""

import pytest

from tests.support.commands import Said, Says


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Says:
    return lambda code: Said(code, *capsys.readouterr())
