"""What the API does, without HTTP."""

from __future__ import annotations

from controller.api.service.acts import (
    ADOPT,
    AGAIN,
    BESIDE,
    act_for,
    adopt_device,
    authorise,
    check_fields,
    floor_act,
    kind_of_sent,
    shuffle_again,
    submit_act,
    takes_two,
)
from controller.api.service.context import ServedTable
from controller.api.service.people import close_screen, sign_in, sign_out
from controller.api.service.screens import SCREEN_IDLE_TIMEOUT, ScreenRegistry, ScreenSession
from controller.api.service.self_test import NOTHING_FOUND, TEST, run_self_test
from controller.api.service.table_api import TableApi
from controller.api.service.views import CachedView, ViewCache, encode

__all__ = [
    "ADOPT",
    "AGAIN",
    "BESIDE",
    "NOTHING_FOUND",
    "SCREEN_IDLE_TIMEOUT",
    "TEST",
    "CachedView",
    "ScreenRegistry",
    "ScreenSession",
    "ServedTable",
    "TableApi",
    "ViewCache",
    "act_for",
    "adopt_device",
    "authorise",
    "check_fields",
    "close_screen",
    "encode",
    "floor_act",
    "kind_of_sent",
    "run_self_test",
    "shuffle_again",
    "sign_in",
    "sign_out",
    "submit_act",
    "takes_two",
]
