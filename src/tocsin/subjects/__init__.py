"""Publications and subscriptions as living regions, in memory: state, enter, leave.

This room knows nothing of durability; the broker makes it durable.
"""

from tocsin.subjects.regions import Region
from tocsin.subjects.subjects import Subjects
from tocsin.subjects.transitions import Transitions

__all__ = ["Region", "Subjects", "Transitions"]
