"""Dictionary columns: words made safe once per dictionary, indices of the contract's width."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry.text import MAX_CHARS, safe_text

MAX_WORDS: Final = 1 << 20
_MAX_WORD_BYTES: Final = 64 << 20
_MAX_VIEW_BYTES: Final = 256 << 20
_MAX_UNSAFE_BYTES: Final = 4 << 20
"""Text that needs cleaning character by character costs about 0.3 us each."""


def is_text(kind: pa.DataType) -> bool:
    """Plain string types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


class WordColumn:
    """Turns one dictionary or string column into the contract's; remembers the last dictionary, which seldom changes.

    fixed  the only words allowed, None when any is; the result's dictionary is then exactly these, in this order
    """

    def __init__(self, target: pa.DictionaryType, fixed: tuple[str, ...] | None = None) -> None:
        self._index = target.index_type
        self._fixed = fixed
        self._key: tuple[int, ...] = ()
        self._held: pa.Array | None = None
        self._words: pa.Array | None = None
        self._codes: pa.Array | None = None

    def convert(self, array: pa.Array) -> pa.Array:
        """The column in the contract's type. `array` must have passed validate(full=True).

        Errors: ValueError for an unknown word of a fixed set, too many words or too much text to clean.
        """
        if not isinstance(array.type, pa.DictionaryType):
            array = array.dictionary_encode()
        dictionary = array.dictionary
        key = _identity(dictionary)
        if key != self._key or self._held is None:
            self._learn(dictionary)
            # Holding the dictionary keeps its addresses from being reused, so equal keys mean equal words.
            self._held, self._key = dictionary, key
        indices = array.indices
        if self._codes is not None:
            indices = pc.take(self._codes, indices, boundscheck=False)
        elif indices.type != self._index:
            indices = indices.cast(self._index)
        return pa.DictionaryArray.from_arrays(indices, self._words, safe=False)

    def _learn(self, dictionary: pa.Array) -> None:
        self._held = None
        if len(dictionary) > MAX_WORDS or dictionary.nbytes > _MAX_WORD_BYTES:
            raise ValueError(f"dictionary of {len(dictionary)} words, {dictionary.nbytes} bytes is over the limit")
        words = dictionary if dictionary.type == pa.utf8() else dictionary.cast(pa.utf8())
        codes = None
        if words.null_count:
            codes = pc.if_else(
                pc.is_null(words), pa.scalar(None, pa.int32()), pa.array(np.arange(len(words), dtype="i4"))
            )
            words = pc.fill_null(words, "")
        if not _plain(words):
            words = _cleaned(words)
        if self._fixed is not None:
            words, codes = self._fixed_codes(words, codes)
        self._words, self._codes = words, None if codes is None else codes.cast(self._index)

    def _fixed_codes(self, words: pa.Array, codes: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        fixed = pa.array(self._fixed, pa.utf8())
        known = pc.index_in(words, value_set=fixed)
        if codes is not None:
            known = pc.if_else(pc.is_valid(codes), known, pa.scalar(None, pa.int32()))
            words = words.filter(pc.is_valid(codes))
        unknown = words.filter(pc.is_null(pc.index_in(words, value_set=fixed)))
        if len(unknown):
            raise ValueError(f"unknown word {unknown[0].as_py()[:60]!r}")
        in_place = codes is None and known.to_pylist() == list(range(len(known)))
        return fixed, None if in_place else known


def _identity(dictionary: pa.Array) -> tuple[int, ...]:
    return (dictionary.offset, len(dictionary), *(b.address if b is not None else 0 for b in dictionary.buffers()))


def has_views(kind: pa.DataType) -> bool:
    """String views, plain or as the words of a dictionary."""
    return bool(pa.types.is_string_view(kind.value_type if isinstance(kind, pa.DictionaryType) else kind))


def check_views(array: pa.Array) -> None:
    """Raise ValueError when string views claim much more text than there is: they may overlap.

    `array` must have passed validate() and its type `has_views`.
    """
    words = array.dictionary if isinstance(array.type, pa.DictionaryType) else array
    buffer = words.buffers()[1]
    if buffer is None or len(words) == 0:
        return
    lengths = np.frombuffer(buffer, "<i4")[words.offset * 4 :: 4][: len(words)]
    if lengths.clip(0).sum(dtype=np.int64) > _MAX_VIEW_BYTES:
        raise ValueError("string views claim more text than the limit")


def _plain(words: pa.Array) -> bool:
    """All words are printable ASCII and not too long; `words` has no nulls."""
    if len(words) == 0:
        return True
    _, offset_buffer, data = words.buffers()
    offsets = np.frombuffer(offset_buffer, "<i4")[words.offset : words.offset + len(words) + 1]
    if int(np.diff(offsets).max()) > MAX_CHARS:
        return False
    if data is None or offsets[-1] == offsets[0]:
        return True
    text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return bool(text.min() >= 0x20 and text.max() <= 0x7E)


def _cleaned(words: pa.Array) -> pa.Array:
    unsafe = pc.or_(pc.match_substring_regex(words, r"[^\x20-\x7e]"), pc.greater(pc.binary_length(words), MAX_CHARS))
    clipped = pc.utf8_slice_codeunits(words.filter(unsafe), 0, MAX_CHARS * 2 + 1)
    if clipped.nbytes > _MAX_UNSAFE_BYTES:
        raise ValueError(f"{clipped.nbytes} bytes of non-ASCII names are over the limit")
    values: list[Any] = [safe_text(word) for word in clipped.to_pylist()]
    return pc.replace_with_mask(words, unsafe, pa.array(values, pa.utf8()))
