"""The tables of the index, and the views for analysts.

Words are stored in `words` only; the other tables have their numbers, and a view of each table has
the words. Search tables are sorted by the search key, then by seq.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

APPLICATION: Final = int.from_bytes(b"hcix", "big")
"""SQLite's application_id of an index."""
MEANING: Final = 3
"""Must be increased whenever the same record gives different rows in the same tables."""


class IndexTable(NamedTuple):
    """A table of integers. In `columns` a * marks numbers of words."""

    name: str
    """Name of its view."""
    columns: str
    key: str
    more: tuple[tuple[str, str], ...] = ()
    """Additional columns of the view: name, and SQL over a row t."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.rstrip("*") for column in self.columns.split())

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(column[:-1] for column in self.columns.split() if column.endswith("*"))

    @property
    def create(self) -> str:
        columns = ", ".join(f"{name} INTEGER NOT NULL" for name in self.names)
        alone = "" if "," not in self.key else ", WITHOUT ROWID"
        if not alone:
            columns = columns.replace(f"{self.key} INTEGER NOT NULL", f"{self.key} INTEGER", 1)
        return f"CREATE TABLE raw_{self.name} ({columns}, PRIMARY KEY ({self.key})) STRICT{alone}"

    @property
    def view(self) -> str:
        shown = [f"{n}_w.word AS {n}" if n in self.words else f"t.{n}" for n in self.names]
        shown += [f"{made} AS {name}" for name, made in self.more]
        joins = "".join(f" JOIN words {n}_w ON {n}_w.id = t.{n}" for n in self.words)
        return f"CREATE VIEW {self.name} AS SELECT {', '.join(shown)} FROM raw_{self.name} t{joins}"

    @property
    def insert(self) -> str:
        return f"INSERT INTO raw_{self.name} VALUES ({', '.join('?' for _ in self.names)})"

    @property
    def put(self) -> str:
        """Insert, or replace the row with the same key."""
        return self.insert.replace("INSERT", "INSERT OR REPLACE", 1)


_TIME: Final = "strftime('%Y-%m-%dT%H:%M:%fZ', t.utc / 1000000.0, 'unixepoch')"
_FACE: Final = "substr('A23456789TJQK', t.card % 13 + 1, 1) || substr('CDHS', t.card / 13 + 1, 1)"

RECORDS: Final = IndexTable(
    "records",
    "seq utc day* round kind* role* name* seat event* dealer* cause segment offset length",
    "seq",
    (("time", _TIME),),
)
SEATS: Final = IndexTable("seats", "seat seq", "seat, seq")
CARDS: Final = IndexTable("cards", "card seq seat how*", "card, seq, seat, how", (("face", _FACE),))
AMOUNTS: Final = IndexTable("amounts", "seq nth what* seat bet* amount", "seq, nth")
BETS: Final = IndexTable(
    "bets", "seq nth round seat hand bet* outcome* stake returned why*", "seq, nth"
)
IRREGULARITIES: Final = IndexTable(
    "irregularities", "what* seq nth seat way* by* second*", "what, seq, nth"
)
PROBLEMS: Final = IndexTable("problems", "seq what*", "seq")
PEOPLE: Final = IndexTable("people", "name* seq part*", "name, seq, part")
SHIFTS: Final = IndexTable("shifts", "first_seq last_seq dealer*", "first_seq")
ROUNDS: Final = IndexTable(
    "rounds",
    "round first_seq last_seq first_utc last_utc over_seq over_utc dealer* wagered won void "
    "irregularities corrected",
    "round",
)
SEGMENTS: Final = IndexTable(
    "segments", "number first_seq last_seq first_utc last_utc least most", "number"
)
"""`first_utc` and `last_utc` are the minimum and maximum, since the clock may be set; `least` and
`most` are those of its amounts."""

TABLES: Final = (
    RECORDS,
    SEATS,
    CARDS,
    AMOUNTS,
    BETS,
    IRREGULARITIES,
    PROBLEMS,
    PEOPLE,
    SHIFTS,
    ROUNDS,
    SEGMENTS,
)
_WORDS: Final = "CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE) STRICT"
_POSITION: Final = (
    "CREATE TABLE goes (one INTEGER PRIMARY KEY CHECK (one = 1), origin TEXT NOT NULL, "
    "segment INTEGER NOT NULL, offset INTEGER NOT NULL, until INTEGER NOT NULL, "
    "seq INTEGER NOT NULL, chain BLOB NOT NULL, standing TEXT NOT NULL, crc INTEGER NOT NULL) "
    "STRICT"
)
"""The position of the index: its last frame and the open state, with a CRC against corruption."""
_INDEXES: Final = (
    "CREATE INDEX raw_records_kind ON raw_records (kind)",
    "CREATE INDEX raw_records_event ON raw_records (event) WHERE event <> 0",
    "CREATE INDEX raw_amounts_amount ON raw_amounts (amount)",
    "CREATE INDEX raw_shifts_dealer ON raw_shifts (dealer)",
    "CREATE UNIQUE INDEX raw_rounds_first ON raw_rounds (first_seq)",
)
SCHEMA: Final = (
    _WORDS,
    _POSITION,
    *(table.create for table in TABLES),
    *_INDEXES,
    *(table.view for table in TABLES),
)
VERSION: Final = crc32("\n".join((*SCHEMA, str(MEANING))).encode()) >> 1
"""SQLite's user_version: differs for every schema and meaning."""
