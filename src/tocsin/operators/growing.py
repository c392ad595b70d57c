"""Arrays that grow at their end while others read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """An array that grows at its end; what was read of it before stays valid."""

    def __init__(self, kind: type[np.generic], *start: int) -> None:
        self._held: npt.NDArray[Any] = np.zeros(16, kind)
        self._length = 0
        self.extend(np.array(start, kind))

    def __len__(self) -> int:
        return self._length

    @property
    def array(self) -> npt.NDArray[Any]:
        """What is there now."""
        return self._held[: self._length]

    @property
    def nbytes(self) -> int:
        """The memory held."""
        return self._held.nbytes

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Growing:
        """Return an array that begins with these values, which are not copied until it changes."""
        grown = cls(values.dtype.type)
        grown._held, grown._length = values, len(values)
        return grown

    def put(self, places: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
        """Set values at places, growing to hold them; what lies between is -1."""
        missing = int(places.max(initial=-1)) + 1 - self._length
        if missing > 0:
            self.extend(np.full(missing, -1, self._held.dtype))
        if not self._held.flags.writeable:
            self._held = self._held.copy()
        self._held[places] = values

    def set(self, place: int, value: Any) -> None:
        """Set the value at one place, growing to hold it; what lies between is -1."""
        if place >= self._length:
            self.extend(np.full(place + 1 - self._length, -1, self._held.dtype))
        elif not self._held.flags.writeable:
            self._held = self._held.copy()
        self._held[place] = value

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Append values."""
        if not len(values):
            return
        end = self._length + len(values)
        if end > len(self._held):
            grown = np.zeros(max(end, len(self._held) * 3 // 2), self._held.dtype)
            grown[: self._length] = self.array
            self._held = grown
        self._held[self._length : end] = values
        self._length = end


class Mostly(Growing):
    """A growing array of whole numbers that takes no memory as long as all of them are -1.

    >>> held = Mostly(np.int32)
    >>> held.put(np.array([0, 1]), np.array([-1, -1]))
    >>> held.set(2, -1)
    >>> held.array.tolist(), held.nbytes
    ([-1, -1, -1], 0)
    >>> held.set(1, 7)
    >>> held.array.tolist()
    [-1, 7, -1]
    """

    def __init__(self, kind: type[np.generic]) -> None:
        super().__init__(kind)
        self._grow(0)

    @property
    def nbytes(self) -> int:
        """The memory held."""
        return 0 if self._is_plain else super().nbytes

    @property
    def _is_plain(self) -> bool:
        return self._held.strides == (0,)

    def put(self, places: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
        """Set values at places, growing to hold them; what lies between is -1."""
        if self._is_plain and (values == -1).all():
            self._grow(int(places.max(initial=-1)) + 1)
        else:
            super().put(places, values)

    def set(self, place: int, value: Any) -> None:
        """Set the value at one place, growing to hold it; what lies between is -1."""
        if self._is_plain and value == -1:
            self._grow(place + 1)
        else:
            super().set(place, value)

    def _grow(self, length: int) -> None:
        """Make it so long at least; the array is replaced before the length says so, for whoever reads meanwhile."""
        if length >= self._length:
            self._held = np.broadcast_to(self._held.dtype.type(-1), length)
            self._length = length
