"""What is learned of operators while they run: how often their literals hold, what they cost, how they fail."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tocsin.operators.conditions import Conditions
from tocsin.operators.operator import Operator

Floats = npt.NDArray[np.float64]

_PRIOR_WEIGHT = 2.0
_PRIOR = 0.5
_MEMORY = 4096.0
_RECENT = 0.05
_LEAST_COST = 1e-9


@dataclass
class Account:
    """What one operator has done. ``shared`` counts the further subscriptions that used a result, ``skipped`` the
    calls that were never made because everything was decided without them."""

    version: str
    evaluated: int = 0
    shared: int = 0
    skipped: int = 0
    held: float = 0.0
    tried: float = 0.0
    seconds: float = 0.0
    cost: float | None = None
    failures: Counter[str] = field(default_factory=Counter)
    last_failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        return {
            "version": self.version,
            "evaluated": self.evaluated,
            "shared": self.shared,
            "skipped": self.skipped,
            "selectivity": round(self.held / self.tried, 6) if self.tried else None,
            "seconds": self.seconds,
            "cost": self.cost,
            "failures": dict(self.failures),
            "last_failure": self.last_failure,
        }


class Learned:
    """The accounts of operators, and the selectivities of literals. Any thread may add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.accounts: dict[tuple[str, str], Account] = {}

    def account(self, operator: Operator) -> Account:
        """Return the account of an operator of this version."""
        key = operator.name, operator.version
        found = self.accounts.get(key)
        if found is None:
            with self._lock:
                found = self.accounts.setdefault(key, Account(operator.version, cost=operator.cost))
        return found

    def ran(self, operator: Operator, calls: int, seconds: float) -> None:
        """Note that calls were made and how long they took."""
        account = self.account(operator)
        with self._lock:
            account.evaluated += calls
            account.seconds += seconds
            if operator.cost is None and calls:
                each = max(seconds / calls, _LEAST_COST)
                recent = 1.0 - (1.0 - _RECENT) ** calls
                account.cost = each if account.cost is None else account.cost + recent * (each - account.cost)

    def failed(self, operator: Operator, kind: str, message: str) -> None:
        """Note a failure."""
        account = self.account(operator)
        with self._lock:
            account.failures[kind] += 1
            account.last_failure = f"{kind}: {message}" if message else kind

    def skipped(self, operator: Operator, skipped: int, shared: int) -> None:
        """Note calls that were not needed, and results that served several."""
        account = self.account(operator)
        with self._lock:
            account.skipped += skipped
            account.shared += shared

    def met(self, conditions: Conditions, literals: npt.NDArray[np.int64], held: npt.NDArray[np.bool_]) -> None:
        """Note which literals held; the old counts fade."""
        if not len(literals):
            return
        with self._lock:
            _grow(conditions)
            np.add.at(conditions.tried, literals, 1.0)
            np.add.at(conditions.held, literals, held.astype(np.float64))
            full = conditions.tried > _MEMORY
            if full.any():
                conditions.tried[full] /= 2
                conditions.held[full] /= 2
            families = conditions.call_family.array[conditions.literal_call.array[literals]]
            for family in np.unique(families).tolist():
                of_family = families == family
                operator = conditions.families[family].operator
                account = self.accounts.setdefault((operator.name, operator.version), Account(operator.version))
                account.tried += float(of_family.sum())
                account.held += float(held[of_family].sum())

    def selectivity(self, conditions: Conditions) -> Floats:
        """Return the probability of each literal to hold: what was seen of it, and at first of its operator."""
        with self._lock:
            _grow(conditions)
            tried, held = conditions.tried.copy(), conditions.held.copy()
        priors = np.full(len(conditions.families), _PRIOR)
        for number, family in enumerate(conditions.families):
            account = self.account(family.operator)
            if account.tried:
                priors[number] = account.held / account.tried
        count = len(conditions.literals)
        prior = priors[conditions.call_family.array[conditions.literal_call.array]] if count else np.zeros(0)
        found: Floats = (held[:count] + _PRIOR_WEIGHT * prior) / (tried[:count] + _PRIOR_WEIGHT)
        return found

    def costs(self, conditions: Conditions) -> Floats:
        """Return the cost of each call in seconds, that of an operator never run being the mean of the others."""
        known = [self.account(family.operator).cost for family in conditions.families]
        seen = [cost for cost in known if cost is not None]
        usual = float(np.mean(seen)) if seen else 1.0
        each = np.array([usual if cost is None else cost for cost in known])
        found: Floats = each[conditions.call_family.array] if len(conditions.call_leaf) else np.zeros(0)
        return found

    def stats(self) -> dict[str, Any]:
        """Return the account of every operator by name; several versions of one by ``name@version``."""
        names = Counter(name for name, _ in self.accounts)
        return {
            name if names[name] == 1 else f"{name}@{version}": account.to_json()
            for (name, version), account in sorted(self.accounts.items())
        }


def _grow(conditions: Conditions) -> None:
    """Make room in the counts of literals."""
    missing = len(conditions.literals) - len(conditions.tried)
    if missing > 0:
        more = np.zeros(missing + len(conditions.tried) // 2)
        conditions.tried, conditions.held = (np.concatenate([old, more]) for old in (conditions.tried, conditions.held))
