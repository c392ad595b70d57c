"""Growing arrays in one pool: the host side of `kernels.pool`."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Int32s
from tocsin.kernels.pool import CAPACITY, LINES, Blocks, make_room, pack, room_for


class BlockPool:
    """Blocks by number, each of some lines, in one int32 pool.

    >>> held = BlockPool()
    >>> held.extend(3)
    >>> held.blocks.shape[2, LINES] = 2
    >>> held.blocks.adding[2] = 5
    >>> held.announce(np.array([2], np.int32))
    >>> held.blocks.shape[2].tolist(), len(held.pool)
    ([0, 5, 0, 2], 10)
    """

    def __init__(self) -> None:
        self.blocks = Blocks(np.empty((0, 4), np.int64), np.empty(0, np.int32), np.zeros(1, np.int64))
        self.pool = np.empty(0, np.int32)

    @property
    def nbytes(self) -> int:
        """The bytes of the pool and of the table of blocks."""
        return self.pool.nbytes + sum(part.nbytes for part in self.blocks)

    def extend(self, room: int) -> None:
        """Make the table of blocks at least so long; new blocks have no lines."""
        shape, adding, used = self.blocks
        missing = room - len(shape)
        if missing > 0:
            shape = np.concatenate([shape, np.zeros((missing, 4), np.int64)])
            self.blocks = Blocks(shape, np.concatenate([adding, np.zeros(missing, np.int32)]), used)

    def tidy(self) -> None:
        """Give back gaps and unused room once they are more than half of what the blocks need."""
        live = self._live()
        if len(self.pool) > live + live // 2:
            packed = np.empty(live, np.int32)
            pack(self.blocks, self.pool, packed)
            self.pool = packed[: self.blocks.used[0]].copy()

    def announce(self, targets: Int32s) -> None:
        """Make room for the elements announced in ``blocks.adding`` of these blocks."""
        room = room_for(self.blocks, targets)
        if self.blocks.used[0] + room > len(self.pool):
            live = self._live()
            packed = np.empty(live + room + live // 8, np.int32)
            pack(self.blocks, self.pool, packed)
            # a block may have shrunk below what it was measured at, so measure again what is still announced
            np.negative(self.blocks.adding, out=self.blocks.adding)
            room = room_for(self.blocks, targets)
            missing = int(self.blocks.used[0]) + room - len(packed)
            self.pool = np.concatenate([packed, np.empty(missing, np.int32)]) if missing > 0 else packed
        make_room(self.blocks, self.pool, targets)

    def _live(self) -> int:
        """Return how much of the pool the blocks have."""
        return int((self.blocks.shape[:, CAPACITY] * self.blocks.shape[:, LINES]).sum())
