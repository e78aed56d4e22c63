"""Memory budget of a reader: no file makes it allocate memory out of proportion to its size.

Packed numbers can be 64 to a byte, and the labels of classes and the columns without names need no
bytes at all, so that a few bytes can claim any amount of memory. A reader counts memory before it
allocates it. The multiple is twice the 512 bytes of doubles that a byte of a packed file can hold;
the largest measured for real models is 200, for a tree of 1,000 classes.
"""

from __future__ import annotations

__all__ = ["FLOOR", "FREE_FEATURES", "MULTIPLE", "Budget"]

MULTIPLE = 1024
FLOOR = 64 * 2**20  # bytes that any file may take
FREE_FEATURES = 2**16  # columns without a byte in the file


class Budget:
    """Memory that is left to the reader of a file.

    Parameters
    ----------
    size : int
        Bytes of the file.

    Examples
    --------
    >>> Budget(1000).take(2**40, "trees")
    Traceback (most recent call last):
      ...
    ValueError: trees of 1099511627776 bytes, where a file of 1000 bytes may take 68132864
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = self._limit = FLOOR + MULTIPLE * size

    def take(self, n_bytes: int, what: str) -> None:
        """Count memory that is about to be allocated; raise ValueError beyond the budget."""
        if n_bytes > self._left:
            raise ValueError(
                f"{what} of {n_bytes} bytes, where a file of {self._size} bytes may take "
                f"{self._limit}"
            )
        self._left -= n_bytes

    def check_features(self, n_features: int) -> None:
        """Raise ValueError where a file is too small for so many columns."""
        if n_features > FREE_FEATURES + self._size:
            raise ValueError(f"{n_features} features in a file of {self._size} bytes")
