"""Equal rows of a table of whole numbers."""

import numpy as np

from rebalancer.scheduling.state import IntArray

_MAX_CODES = 2**62
"""So that a code is a 64-bit number."""


def number_rows(rows: IntArray) -> IntArray:
    """A number for each row, from 0 without gaps, in the order of the rows' values; equal rows have
    equal ones.
    """
    codes, count = np.zeros(len(rows), np.int64), 1
    # Sorting codes takes a fraction of what sorting whole rows does.
    for column in rows.T if len(rows) else ():
        values, span = column - column.min(), int(column.max()) - int(column.min()) + 1
        if count * span > _MAX_CODES:
            codes, count = _numbered(codes)
            values, span = _numbered(column)
        codes, count = codes * span + values, count * span
    return _numbered(codes)[0]


def _numbered(codes: IntArray) -> tuple[IntArray, int]:
    """The same order without gaps, and how many there are."""
    values, numbers = np.unique(codes, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(values)
