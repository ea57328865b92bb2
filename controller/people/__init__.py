"""People of a house: badges, PINs, roles, sign-in, rate limit."""

from __future__ import annotations

from controller.people.approvals import ADOPTED, SECONDS, Act, act_of
from controller.people.directory import PeopleFile
from controller.people.history import unlike
from controller.people.person import HouseRole, People, Person
from controller.people.records import Looked, SignedIn, SignedOut, entry_for
from controller.people.restore import standing_before
from controller.people.service import WORDS, Denied, PeopleDesk, Reason, Taken
from controller.people.sign_in import AT_CLOSED, START, Session, Standing, dealer

__all__ = [
    "ADOPTED",
    "AT_CLOSED",
    "SECONDS",
    "START",
    "WORDS",
    "Act",
    "Denied",
    "HouseRole",
    "Looked",
    "People",
    "PeopleDesk",
    "PeopleFile",
    "Person",
    "Reason",
    "Session",
    "SignedIn",
    "SignedOut",
    "Standing",
    "Taken",
    "act_of",
    "dealer",
    "entry_for",
    "standing_before",
    "unlike",
]
