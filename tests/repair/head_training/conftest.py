"""A slow, plain reference in double precision, and features that look like those of networks."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp


class Reference:
    """The penalised loss as the documentation words it, written without any of the trainer's parts."""

    def __init__(self, features, targets, weights, *, penalty, is_softmax=True):
        values = np.asarray(features, dtype=np.float64)
        self.deviation, self.centre = values.std(axis=0), values.mean(axis=0)
        self.inputs = np.column_stack(
            [(values - self.centre) / self.deviation, np.ones(len(values))]
        )
        self.targets, self.penalty, self.is_softmax = targets, penalty, is_softmax
        self.shares = weights / weights.sum()
        self.shape = (targets.shape[1], self.inputs.shape[1])

    def losses(self, layer):
        logits = self.inputs @ layer.T
        if self.is_softmax:
            return logsumexp(logits, axis=1) - logits[self.targets], np.exp(
                logits - logsumexp(logits, axis=1, keepdims=True)
            )
        return np.logaddexp(0, np.where(self.targets, -logits, logits)).sum(axis=1), expit(logits)

    def weighted(self, layer, shares):
        losses, likely = self.losses(layer)
        return float(shares @ losses), ((likely - self.targets) * shares[:, None]).T @ self.inputs

    def pulled(self, layer):
        slope = self.penalty * layer
        slope[:, -1] = 0.0
        return 0.5 * self.penalty * float(np.square(layer[:, :-1]).sum()), slope

    def objective(self, flat):
        layer = flat.reshape(self.shape)
        loss, slope = self.weighted(layer, self.shares)
        extra, pull = self.pulled(layer)
        return loss + extra, (slope + pull).ravel()

    def of_head(self, head):
        weights = np.asarray(head.weights, dtype=np.float64)
        return self.objective(
            np.column_stack([weights * self.deviation, head.bias + weights @ self.centre]).ravel()
        )[0]

    def lowest(self):
        options = {"maxiter": 5_000, "maxfun": 10_000, "gtol": 1e-9, "ftol": 1e-14, "maxcor": 20}
        return float(
            minimize(
                self.objective,
                np.zeros(np.prod(self.shape)),
                jac=True,
                method="L-BFGS-B",
                options=options,
            ).fun
        )

    def lowest_worst(self, group_objectives):
        """Return the least loss with group_objectives: their worst groups as variables, held up by one constraint a group."""
        size, free = int(np.prod(self.shape)), self.shares.copy()
        shares = np.array(
            [
                sum(self.shares[group].sum() for group in group_objective)
                for group_objective in group_objectives
            ]
        )
        for group_objective in group_objectives:
            free[np.concatenate(group_objective)] = 0.0

        def objective(flat):
            layer = flat[:size].reshape(self.shape)
            (loss, slope), (extra, pull) = self.weighted(layer, free), self.pulled(layer)
            return loss + extra + float(shares @ flat[size:]), np.concatenate(
                [(slope + pull).ravel(), shares]
            )

        def above(flat, place, inner):
            return flat[size + place] - self.weighted(flat[:size].reshape(self.shape), inner)[0]

        def slope_above(flat, place, inner):
            found = np.concatenate(
                [
                    -self.weighted(flat[:size].reshape(self.shape), inner)[1].ravel(),
                    np.zeros(len(group_objectives)),
                ]
            )
            found[size + place] = 1.0
            return found

        constraints = []
        for place, group_objective in enumerate(group_objectives):
            for group in group_objective:
                inner = np.zeros(len(free))
                inner[group] = self.shares[group] / self.shares[group].sum()
                constraints.append(
                    {"type": "ineq", "fun": above, "jac": slope_above, "args": (place, inner)}
                )
        begin = np.concatenate([np.zeros(size), np.full(len(group_objectives), 5.0)])
        options = {"maxiter": 1_000, "ftol": 1e-11}
        found = minimize(
            objective, begin, jac=True, method="SLSQP", constraints=constraints, options=options
        )
        assert found.success
        return float(found.fun)


@pytest.fixture
def reference():
    return Reference


@pytest.fixture
def make_features():
    """Skewed, correlated features whose spectrum decays by a power; classes overlap."""

    def build(n_samples, width, n_classes, *, decay=1.0, apart=0.4, seed=0):
        draws = np.random.default_rng(seed)
        spectrum = (1.0 + np.arange(width)) ** (-decay / 2)
        spectrum *= np.sqrt(width / np.square(spectrum).sum())
        codes = np.arange(n_samples) % n_classes
        centres = draws.standard_normal((n_classes, width)) * spectrum
        turn = np.linalg.qr(draws.standard_normal((width, width)))[0]
        values = (
            apart * centres[codes] + draws.standard_normal((n_samples, width)) * spectrum
        ) @ turn
        return np.log1p(np.exp(2 * values)).astype(np.float32), codes

    return build
