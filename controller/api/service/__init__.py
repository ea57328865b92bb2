"""What the API does, without HTTP."""

from __future__ import annotations

from controller.api.service.acts import (
    ADOPT,
    AGAIN,
    NON_EVENT_ACTS,
    NOTHING_FOUND,
    TEST,
    act_for,
    adopt_device,
    authorise,
    check_fields,
    close_screen,
    floor_act,
    kind_of_sent,
    run_self_test,
    shuffle_again,
    sign_in,
    sign_out,
    submit_act,
    takes_two,
)
from controller.api.service.screens import SCREEN_IDLE_TIMEOUT, ScreenRegistry, ScreenSession
from controller.api.service.table_api import CachedView, ServedTable, TableApi, ViewCache, encode

__all__ = [
    "ADOPT",
    "AGAIN",
    "NON_EVENT_ACTS",
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
