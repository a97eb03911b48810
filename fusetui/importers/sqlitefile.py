"""Tables of a SQLite file that is never written to and never trusted, as numpy columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.errors import TelemetryError

MAGIC: Final = b"SQLite format 3\0"
NULL: Final = -(1 << 62)
"""Stands for a null among integers."""
_CHUNK_ROWS: Final = 1 << 14
_MAX_VALUE: Final = 16 << 20
_MAX_TEXT: Final = 8192
_LEAST_ROW: Final = 4  # no row takes fewer bytes of the file
_LOOKUP: Final = 500
_ERRORS: Final = (sqlite3.Error, OverflowError, UnicodeDecodeError)  # the last: from its own error messages


class Database:
    """One file. Views, virtual tables and triggers of it are not used; a `-wal` beside it is not read.

    tables  name -> its columns
    damage  what could not be read, one line each
    """

    def __init__(self, path: Path, what: str) -> None:
        """Raises TelemetryError, calling the file `what`, when it cannot be read as a database."""
        self.where, self.damage = str(path), list[str]()
        self.tables: dict[str, frozenset[str]] = {}
        try:
            self._rows_believed = path.stat().st_size // _LEAST_ROW
            if missing := _missing(path):
                self.damage.append(missing)
            if Path(f"{path}-wal").exists():
                self.damage.append("a -wal file lies beside it: what is only in that was not read")
            self._db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        except (OSError, sqlite3.Error) as error:
            raise TelemetryError(self.where, f"{what} that cannot be opened ({error})") from None
        try:
            self._db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
            self._db.execute("pragma trusted_schema = off")
            self._db.execute("pragma cell_size_check = on")
            # The file is open for reading only: with this, one that is cut is read as far as it goes.
            self._db.execute("pragma writable_schema = on")
            self._db.execute("pragma cache_size = -4096")
            self._find_tables()
        except _ERRORS as error:
            self._db.close()
            reason = "; ".join([*self.damage, str(error)])
            raise TelemetryError(self.where, f"{what} that cannot be read ({reason})", "export it again") from None

    def _find_tables(self) -> None:
        found = self._db.execute("select name from sqlite_master where type = 'table' and sql like 'create table%'")
        for (name,) in found.fetchall():
            columns = [row[1] for row in self._db.execute(f"pragma table_info({_quoted(name)})")]
            self.tables[name] = frozenset(columns)

    def chunks(
        self,
        table: str,
        columns: Sequence[str],
        *,
        reals: Sequence[str] = (),
        texts: Sequence[str] = (),
        where: str = "1",
        order: str = "",
    ) -> Iterator[list[Any]]:
        """Rows of a table in file order or by the column `order`: an int64 array per name in `columns`, a float64 array
        per name in `reals`, a sequence of str or None per name in `texts`; only those `where` a SQL condition holds.

        A null, or a column that the table has not, is NULL, NaN or None. A damaged table ends early: see `damage`.
        """
        have = self.tables.get(table)
        if have is None:
            return
        picks = [_quoted(c) if c in have else f"{NULL}" for c in columns]
        picks += [_real(_quoted(c)) if c in have else "null" for c in reals]
        picks += [f"cast(substr({_quoted(c)}, 1, {_MAX_TEXT}) as text)" if c in have else "null" for c in texts]
        numbers = len(columns) + len(reals)
        sql = f"select {', '.join(picks)} from {_quoted(table)} where {where}"
        if order in have:
            sql += f" order by {_quoted(order)}"
        count = 0
        for rows in self._parts(table, sql):
            count += len(rows)
            yield _columns(rows, len(columns), numbers)
            if count > self._rows_believed:
                self.damage.append(f"table {table} goes in circles: {count:,} rows of it were read")
                return

    def _parts(self, table: str, sql: str) -> Iterator[list[tuple[Any, ...]]]:
        count = 0
        try:
            with closing(self._db.execute(sql)) as cursor:
                while rows := cursor.fetchmany(_CHUNK_ROWS):
                    count += len(rows)
                    yield rows
        except _ERRORS as error:
            # The rows just before the damage are lost with the call that met it.
            reason, before = error, len(self.damage)
            rescued = self.rows(f"{sql} limit {_CHUNK_ROWS} offset {count}", limit=_CHUNK_ROWS)
            del self.damage[before:]
            count += len(rescued)
            self.damage.append(f"table {table} is damaged ({reason}): {count:,} rows of it were read")
            if rescued:
                yield rescued

    def texts(self, table: str, key: str, value: str, keys: Sequence[int]) -> dict[int, str]:
        """The text beside each of `keys`; keys that are not there are left out."""
        found: dict[int, str] = {}
        if not {key, value} <= self.tables.get(table, frozenset()):
            return found
        for low in range(0, len(keys), _LOOKUP):
            part = keys[low : low + _LOOKUP]
            holes = ",".join("?" * len(part))
            sql = f"select {_quoted(key)}, substr({_quoted(value)}, 1, {_MAX_TEXT}) from {_quoted(table)}"
            found |= {
                int(number): str(text)
                for number, text in self.rows(f"{sql} where {_quoted(key)} in ({holes})", part)
                if isinstance(number, int) and text is not None
            }
        return found

    def rows(self, sql: str, values: Sequence[Any] = (), *, limit: int = 10_000) -> list[tuple[Any, ...]]:
        """At most `limit` rows of a query; those before the damage when there is some."""
        found: list[tuple[Any, ...]] = []
        try:
            with closing(self._db.execute(sql, values)) as cursor:
                while len(found) < limit and (row := cursor.fetchone()):
                    found.append(row)
        except _ERRORS as error:
            self.damage.append(f"a table is damaged ({error})")
        return found

    def facts(self, table: str, names: Sequence[str]) -> dict[str, str]:
        """Values of a table of names and values, of those names that are in it."""
        if not {"name", "value"} <= self.tables.get(table, frozenset()):
            return {}
        holes = ",".join("?" * len(names))
        sql = f"select name, substr(value, 1, 300) from {_quoted(table)} where name in ({holes})"
        return {str(name): str(value) for name, value in self.rows(sql, names) if value not in (None, "")}

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _columns(rows: list[tuple[Any, ...]], ints: int, numbers: int) -> list[Any]:
    if ints == len(rows[0]):
        try:
            flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * ints)
            return list(np.ascontiguousarray(flat.reshape(-1, ints).T))
        except (ValueError, TypeError, OverflowError):
            pass  # a null, or what is no number: column by column below
    values = list(zip(*rows, strict=True))
    found: list[Any] = [_whole(value) for value in values[:ints]]
    return [*found, *(np.array(value, np.float64) for value in values[ints:numbers]), *values[numbers:]]


def _whole(values: tuple[Any, ...]) -> npt.NDArray[np.int64]:
    try:
        return np.fromiter(values, np.int64, len(values))
    except (ValueError, TypeError, OverflowError):
        return np.array([value if isinstance(value, int) else NULL for value in values], np.int64)


def _real(column: str) -> str:
    """A number, or a text that is one; SQLite itself would take any other text for 0."""
    plain = f"{column} glob '*[0-9]*' and not {column} glob '*[^-+.eE0-9]*'"
    return f"case when typeof({column}) in ('integer', 'real') or {plain} then cast({column} as real) end"


def _missing(path: Path) -> str:
    """What of a file is not there, by the number of pages that its beginning tells; "" for nothing."""
    with path.open("rb") as file:
        begin = file.read(32)
    page, pages = int.from_bytes(begin[16:18], "big"), int.from_bytes(begin[28:32], "big")
    whole, size = (page if page > 1 else 1 << 16) * pages, path.stat().st_size
    return f"the file is cut off: {size:,} of {whole:,} bytes are there" if size < whole else ""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
