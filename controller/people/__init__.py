"""People of a house: badges, PINs, roles, sign-in, rate limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.lazy_door import lazy_door

if TYPE_CHECKING:
    from controller.people.directory import PeopleFile, history_differences
    from controller.people.person import ADOPTED, SECONDS, Act, HouseRole, People, Person, act_of
    from controller.people.records import RecordView, SignInData, SignOutData, entry_for
    from controller.people.service import DENIAL_TEXTS, ActSigners, DenialReason, Denied, PeopleDesk
    from controller.people.sign_in import (
        AT_CLOSED,
        NO_SIGN_INS,
        SignInSession,
        SignInState,
        dealer,
        restore_sign_ins,
        session,
    )
else:
    __getattr__ = lazy_door(
        __name__,
        {
            "directory": "PeopleFile history_differences",
            "person": "ADOPTED SECONDS Act HouseRole People Person act_of",
            "records": "RecordView SignInData SignOutData entry_for",
            "service": "DENIAL_TEXTS ActSigners DenialReason Denied PeopleDesk",
            "sign_in": "AT_CLOSED NO_SIGN_INS SignInSession SignInState dealer restore_sign_ins "
            "session",
        },
    )
from controller.people.records import SignInEntry

__all__ = [
    "ADOPTED",
    "AT_CLOSED",
    "DENIAL_TEXTS",
    "NO_SIGN_INS",
    "SECONDS",
    "Act",
    "ActSigners",
    "DenialReason",
    "Denied",
    "HouseRole",
    "People",
    "PeopleDesk",
    "PeopleFile",
    "Person",
    "RecordView",
    "SignInData",
    "SignInEntry",
    "SignInSession",
    "SignInState",
    "SignOutData",
    "act_of",
    "dealer",
    "entry_for",
    "history_differences",
    "restore_sign_ins",
    "session",
]
