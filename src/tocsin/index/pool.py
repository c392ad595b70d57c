"""Growing arrays in one pool: the host side of `kernels.pool`."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Int32s
from tocsin.kernels.pool import Blocks, make_room, pack, room_for


class BlockPool:
    """Blocks by number, each of some lines, in one int32 pool.

    >>> held = BlockPool()
    >>> held.extend(3)
    >>> held.blocks.lines[2] = 2
    >>> held.blocks.adding[2] = 5
    >>> held.announce(np.array([2], np.int32))
    >>> int(held.blocks.capacity[2]), len(held.pool)
    (5, 10)
    """

    def __init__(self) -> None:
        none, short = np.empty(0, np.int64), np.empty(0, np.int32)
        self.blocks = Blocks(none, short, short, short, short, np.zeros(1, np.int64))
        self.pool = np.empty(0, np.int32)

    @property
    def nbytes(self) -> int:
        """The bytes of the pool and of the table of blocks."""
        return self.pool.nbytes + sum(part.nbytes for part in self.blocks)

    def extend(self, room: int) -> None:
        """Make the table of blocks at least so long; new blocks have no lines."""
        missing = room - len(self.blocks.first)
        if missing > 0:
            *parts, used = self.blocks
            self.blocks = Blocks(*(np.concatenate([part, np.zeros(missing, part.dtype)]) for part in parts), used)

    def announce(self, targets: Int32s) -> None:
        """Make room for the elements announced in ``blocks.adding`` of these blocks."""
        room = room_for(self.blocks, targets)
        if self.blocks.used[0] + room > len(self.pool):
            live = int((self.blocks.capacity.astype(np.int64) * self.blocks.lines).sum())
            packed = np.empty(live + room + live // 8, np.int32)
            pack(self.blocks, self.pool, packed)
            # a block may have shrunk below what it was measured at, so measure again what is still announced
            np.negative(self.blocks.adding, out=self.blocks.adding)
            room = room_for(self.blocks, targets)
            missing = int(self.blocks.used[0]) + room - len(packed)
            self.pool = np.concatenate([packed, np.empty(missing, np.int32)]) if missing > 0 else packed
        make_room(self.blocks, self.pool, targets)
