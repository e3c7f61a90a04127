"""Error rates and power of corrections on counts alone, for the benchmark proof.py."""

import json
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import generator
from weakspot.core.statistics import CORRECTIONS, adjusted_p_values, fisher_ps
from weakspot.verify.holdout import EQUAL_PART, MAX_WEIGHT

ALPHA, SCREEN_P, MOST = 0.1, 0.05, 200


SCHEMES = ("halves", "cross-fit")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured rate; the bound is an upper one, or a lower one for power."""

    name: str
    value: float
    error: float
    n_worlds: int
    bound: float | None = None
    is_lower_bound: bool = False

    @property
    def holds(self):
        """Return whether the figure keeps its bound; error rates within two standard errors, power as it is."""
        if self.bound is None:
            return None
        return (
            self.value >= self.bound
            if self.is_lower_bound
            else self.value <= self.bound + 2 * self.error
        )

    def show(self):
        """Print the figure for machines and for people."""
        wanted = (
            None if self.bound is None else f"{'>=' if self.is_lower_bound else '<='} {self.bound}"
        )
        record = {
            "figure": self.name,
            "value": round(self.value, 4),
            "standard_error": round(self.error, 4),
        }
        print(
            json.dumps({**record, "worlds": self.n_worlds, "wanted": wanted, "holds": self.holds})
        )
        tail = "" if wanted is None else f"  wanted {wanted}: {'yes' if self.holds else 'NO'}"
        print(
            f"  {self.name}: {self.value:.3f} (standard error {self.error:.3f}, {self.n_worlds} worlds){tail}"
        )


def figure(name, values, **bound):
    """Return the mean of one value a world."""
    numbers = np.asarray(values, dtype=np.float64)
    return Figure(
        name=name,
        value=float(numbers.mean()),
        error=float(numbers.std() / np.sqrt(len(numbers))),
        n_worlds=len(numbers),
        **bound,
    )


def drawn_world(
    random, *, n_rows=600, n_columns=100, n_values=10, rate=0.15, n_planted=0, planted_rate=0.45
):
    """Return attribute codes [n, columns] and failures [n]; the first value of the first columns raises the failure rate."""
    codes = random.integers(0, n_values, (n_rows, n_columns))
    chances = np.where((codes[:, :n_planted] == 0).any(axis=1), planted_rate, rate)
    return codes, random.random(n_rows) < chances


def tables(codes, failed, n_values):
    """Return failures and samples inside, failures and samples outside, of every value of every column [columns * values, 4]."""
    cells = codes + n_values * np.arange(codes.shape[1])
    n_cells = n_values * codes.shape[1]
    sizes = np.bincount(cells.ravel(), minlength=n_cells)
    wrong = np.bincount(cells[failed].ravel(), minlength=n_cells)
    return np.stack([wrong, sizes, failed.sum() - wrong, len(failed) - sizes], axis=1)


def fast_confirmed(discovery_p, confirmation_p, *, correction, weights, alpha, methods=None):
    """Return which hypotheses are confirmed: screened and weighed on one half, tested on the other.

    Weights are `equal`, by `discovery` within each method, or `pooled`: by discovery over all methods together.
    """
    chosen = np.argsort(discovery_p, kind="stable")[:MOST]
    chosen = chosen[discovery_p[chosen] <= SCREEN_P]
    raw = (
        np.ones(len(chosen))
        if weights == "equal"
        else np.maximum(discovery_p[chosen], MAX_WEIGHT**-2.0) ** -0.5
    )
    groups = np.zeros(len(chosen)) if methods is None or weights == "pooled" else methods[chosen]
    shares = np.ones(len(chosen))
    for group in set(groups.tolist()):
        own = groups == group
        shares[own] = EQUAL_PART + (1.0 - EQUAL_PART) * raw[own] / raw[own].mean()
    adjusted = adjusted_p_values(confirmation_p[chosen], correction=correction, weights=shares)
    return chosen[adjusted <= alpha]


def fast_power(n_worlds, *, n_fitted, n_values=10, n_class=500):
    """Yield how often a slice with 50 confirmation samples, 30 % against 10 %, is confirmed with each kind of weight.

    So many of the other hypotheses are rules that were fitted to the discovery half: certain there, chance elsewhere.
    """
    methods = np.where(np.arange(1_000) < 1_000 - n_fitted, "honest", "fitted")
    hits = {weights: [] for weights in ("discovery", "pooled", "equal")}
    for number in range(n_worlds):
        random = generator(number, "fast power")
        halves = []
        for _ in range(2):
            codes = random.integers(0, n_values, (n_class, 100))
            codes[:, 0] = np.where(
                np.arange(n_class) < 50, 0, random.integers(1, n_values, n_class)
            )
            failed = random.random(n_class) < np.where(codes[:, 0] == 0, 0.3, 0.1)
            halves.append(fisher_ps(*tables(codes, failed, n_values).T))
        halves[0][methods == "fitted"] = 1e-12
        for weights, found in hits.items():
            found.append(
                0
                in fast_confirmed(
                    *halves, correction="fdr", weights=weights, alpha=ALPHA, methods=methods
                )
            )
    for weights, found in hits.items():
        yield figure(
            f"power, 10% and 30%, 50 of 500, {n_fitted} closely fitted rules among 1000 hypotheses, {weights} weights",
            found,
        )


def fast_worlds(n_worlds, *, n_planted, n_values=10):
    """Yield (p-values of one half, p-values of the other) of 1,000 hypotheses."""
    for number in range(n_worlds):
        random = generator(number, "fast worlds", str(n_planted))
        codes, failed = drawn_world(random, n_values=n_values, n_planted=n_planted)
        order = np.argsort(
            failed, kind="stable"
        )  # as `split_halves` does: the same share of failures in both
        yield tuple(
            fisher_ps(*tables(codes[half], failed[half], n_values).T)
            for half in (order[::2], order[1::2])
        )


def fast_errors(n_worlds, *, n_planted):
    """Yield error rates of every correction, scheme and kind of weight."""
    halves = list(fast_worlds(n_worlds, n_planted=n_planted))
    kind = "mixed worlds" if n_planted else "null worlds"
    for correction in CORRECTIONS:
        for scheme in SCHEMES:
            for weights in ("discovery", "equal"):
                rates, found = [], []
                for first, second in halves:
                    turns = (
                        [(first, second)]
                        if scheme == "halves"
                        else [(first, second), (second, first)]
                    )
                    options = {
                        "correction": correction,
                        "weights": weights,
                        "alpha": ALPHA / len(turns),
                    }
                    confirmed = np.concatenate([fast_confirmed(*turn, **options) for turn in turns])
                    is_real = (confirmed % 10 == 0) & (confirmed < 10 * n_planted)
                    n_false = int((~is_real).sum())
                    rates.append(
                        n_false > 0 if correction == "fwer" else n_false / max(1, len(confirmed))
                    )
                    found.append(len(set(confirmed[is_real].tolist())) / max(1, n_planted))
                title = f"{kind}, 1000 hypotheses, {correction}, {scheme}, {weights} weights"
                measure = "any false finding" if correction == "fwer" else "false share"
                yield figure(f"{title}: {measure}", rates, bound=ALPHA)
                if n_planted:
                    yield figure(f"{title}: planted slices confirmed", found)
