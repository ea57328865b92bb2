"""What the API does, without HTTP."""

from __future__ import annotations

from controller.api.service.approvals import (
    ADOPT,
    AGAIN,
    BESIDE,
    act_for,
    floor_act,
    kind_of_sent,
    only,
    takes_two,
)
from controller.api.service.context import Serving
from controller.api.service.screens import Screen, Screens
from controller.api.service.self_test import NOTHING_FOUND, TEST
from controller.api.service.shielded import Doing
from controller.api.service.sign_in import dealer_here, signed_in
from controller.api.service.surveillance import Looks
from controller.api.service.views import Looking, Seen, encode

__all__ = [
    "ADOPT",
    "AGAIN",
    "BESIDE",
    "NOTHING_FOUND",
    "TEST",
    "Doing",
    "Looking",
    "Looks",
    "Screen",
    "Screens",
    "Seen",
    "Serving",
    "act_for",
    "dealer_here",
    "encode",
    "floor_act",
    "kind_of_sent",
    "only",
    "signed_in",
    "takes_two",
]
