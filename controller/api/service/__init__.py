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
from controller.api.service.context import ServedTable
from controller.api.service.screens import ScreenRegistry, ScreenSession
from controller.api.service.self_test import NOTHING_FOUND, TEST
from controller.api.service.shielded import ShieldedTasks
from controller.api.service.sign_in import dealer_here, signed_in
from controller.api.service.surveillance import SurveillanceLog
from controller.api.service.views import CachedView, ViewCache, encode

__all__ = [
    "ADOPT",
    "AGAIN",
    "BESIDE",
    "NOTHING_FOUND",
    "TEST",
    "CachedView",
    "ScreenRegistry",
    "ScreenSession",
    "ServedTable",
    "ShieldedTasks",
    "SurveillanceLog",
    "ViewCache",
    "act_for",
    "dealer_here",
    "encode",
    "floor_act",
    "kind_of_sent",
    "only",
    "signed_in",
    "takes_two",
]
