"""Reference engine in plain NumPy: slow, short, and the oracle for tests of the core.

The engine follows the definitions: every histogram is summed from its rows, every node is searched
in full, and nodes are split one after the other. It shares the core's integer gradients, so trees
must be equal, not just close.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NARROW_ROWS = 32768  # from here on gradients are rounded to 15 bits
NARROW_MEAN_UNITS = 16


@dataclass
class Settings:
    max_depth: float = 6
    max_leaves: float = np.inf
    best_first: bool = False
    min_child_weight: float = 1.0
    min_samples_leaf: int = 1
    gamma: float = 0.0
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    max_delta_step: float = 0.0
    monotone: list[int] = field(default_factory=list)
    interactions: list[list[int]] = field(default_factory=list)
    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 64
    min_cat_weight: float = 10.0
    cat_smooth: float = 10.0
    cat_l2: float = 10.0


@dataclass(eq=False)
class Node:
    rows: np.ndarray
    depth: int
    id: int
    gain: float = -1.0
    feature: int = 0
    bin: int = 0
    missing_left: bool = False
    levels: frozenset[int] | None = None  # categorical split: left levels, with missing as a level
    children: list[Node] = field(default_factory=list)
    path: frozenset[int] = frozenset()
    bounds: tuple[float, float] = (-np.inf, np.inf)  # bounds of its step, in units


def fixed_point(values: np.ndarray, bound: float) -> tuple[np.ndarray, int]:
    """Return 30-bit integers of values below ``bound``, and the exponent of the scale.

    value = integer * 2^-exponent
    """
    exponent = min(30 - int(np.frexp(bound)[1]), 1000) if bound > 0 else 0
    return np.rint(values * 2.0**exponent).astype(np.int64), exponent


def _shift(total: int, n: int, lowest: int) -> int:
    shift = lowest
    while (total >> shift) + n >= 2**31:
        shift += 1
    return shift


def _mix(rows: np.ndarray, seed: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (rows.astype(np.uint32) ^ np.uint32(seed)) * np.uint32(0x9E3779B1) + np.uint32(seed)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x2C1B3C6D)
        x ^= x >> np.uint32(12)
        x *= np.uint32(0x297A2D39)
        return x ^ (x >> np.uint32(15))


def units(fixed: np.ndarray, seed: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the split search's integers of fixed-point pairs (n, outputs, 2), and the shifts."""
    n, outputs, _ = fixed.shape
    totals = np.abs(fixed).sum(axis=0)
    if outputs == 1 and n >= NARROW_ROWS:
        shifts = tuple(_shift(int(totals[0, j]), n, 16) for j in (0, 1))
        if all(int(totals[0, j]) >> shifts[j] >= NARROW_MEAN_UNITS * n for j in (0, 1)):
            u = _mix(np.arange(n), seed).astype(np.int64)
            up = np.stack([(u & 0xFFFF) << (shifts[0] - 16), (u >> 16) << (shifts[1] - 16)], axis=1)
            return (fixed + up[:, None, :]) >> np.array(shifts), shifts
    shifts = (0, 0)
    for k in range(outputs):
        shifts = tuple(_shift(int(totals[k, j]), n, shifts[j]) for j in (0, 1))
    half = np.array([2 ** (s - 1) if s > 0 else 0 for s in shifts])
    return (fixed + half) >> np.array(shifts), shifts


class ReferenceGrower:
    """Grower of one tree on codes (n, features); a code equal to n_bins[f] is missing."""

    def __init__(
        self,
        codes,
        n_bins,
        fixed,
        exponents,
        settings,
        *,
        seed=0,
        edges=None,
        turn=0,
        categories=(),
    ):
        self.codes, self.n_bins, self.fixed = codes, n_bins, fixed
        self.categories = frozenset(categories)
        self.exponents, self.settings = exponents, settings
        self.edges = edges or [np.arange(bins - 1) + 0.5 for bins in n_bins]
        # The first of equal splits in this order wins.
        self.features = np.roll(np.arange(codes.shape[1]), -(turn % codes.shape[1]))
        self.units, shifts = units(fixed, seed)
        self.g_unit = 2.0 ** (shifts[0] - exponents[0])
        self.h_unit = 2.0 ** (shifts[1] - exponents[1])
        self.min_h = np.clip(np.ceil(settings.min_child_weight / self.h_unit), 1, 2**31 - 1)

    def score(self, g, h, more_lambda=0.0):
        """Return the score of one side, with g and h (..., outputs) in integer units."""
        s = self.settings
        alpha, lam = s.reg_alpha / self.g_unit, s.reg_lambda / self.h_unit + more_lambda
        shrunk = np.maximum(np.abs(g) - alpha, 0.0)
        step = shrunk / (h + lam)
        if s.max_delta_step > 0:
            step = np.minimum(step, s.max_delta_step / (self.g_unit / self.h_unit))
        return (step * (2 * shrunk - (h + lam) * step)).sum(axis=-1)

    def step(self, g, h, bounds, more_lambda=0.0):
        """Return the step of one side and output, in units, within the bounds of the node."""
        s = self.settings
        alpha, lam = s.reg_alpha / self.g_unit, s.reg_lambda / self.h_unit + more_lambda
        step = max(abs(g) - alpha, 0.0) / (h + lam) if h + lam > 0 else 0.0
        if s.max_delta_step > 0:
            step = min(step, s.max_delta_step / (self.g_unit / self.h_unit))
        return float(np.clip(-np.sign(g) * step, *bounds))

    def bounded_score(self, g, h, step, more_lambda=0.0):
        s = self.settings
        alpha, lam = s.reg_alpha / self.g_unit, s.reg_lambda / self.h_unit + more_lambda
        return -(2 * g * step + (h + lam) * step**2 + 2 * alpha * abs(step))

    def both_scores(self, node, f, g, h):
        """Return the sum of both sides' scores; None if a monotone constraint forbids the split."""
        if not self.settings.monotone:
            return sum(self.score(x, y) for x, y in zip(g, h, strict=True))
        steps = [self.step(x[0], y[0], node.bounds) for x, y in zip(g, h, strict=True)]
        if self.settings.monotone[f] * (steps[1] - steps[0]) < 0:
            return None
        return sum(self.bounded_score(x[0], y[0], w) for x, y, w in zip(g, h, steps, strict=True))

    def own_score(self, node, g, h, more_lambda=0.0):
        if not self.settings.monotone:
            return self.score(g, h, more_lambda)
        step = self.step(g[0], h[0], node.bounds, more_lambda)
        return self.bounded_score(g[0], h[0], step, more_lambda)

    def may_use(self, node, f):
        groups = self.settings.interactions
        return not groups or any(node.path | {f} <= set(group) for group in groups)

    def best_split(self, node):
        """Search every feature and bin, missing right, then left; the first highest score wins."""
        s, rows = self.settings, node.rows
        g_all, h_all = self.units[rows, :, 0], self.units[rows, :, 1]
        outputs = g_all.shape[1]
        own = self.own_score(node, g_all.sum(0), h_all.sum(0))
        unit = self.g_unit / self.h_unit * self.g_unit
        best = own + max(s.gamma / unit, 1e-10 * abs(own))
        if node.depth >= s.max_depth or len(rows) < 2 * s.min_samples_leaf:
            return
        for f in self.features.tolist():
            if not self.may_use(node, f):
                continue
            code = self.codes[rows, f]
            if f in self.categories:
                best = self.best_set(node, f, code, own, best)
                continue
            missing = code == self.n_bins[f]
            for missing_left in (False, True):
                if missing_left and not missing.any():
                    continue
                for b in range(self.n_bins[f]):
                    left = (code <= b) | (missing & missing_left)
                    left &= ~missing | missing_left
                    if not (left & ~missing).any():
                        continue  # only missing rows on the left: same as on the right
                    sides = [left, ~left]
                    if any(side.sum() < s.min_samples_leaf for side in sides):
                        continue
                    h = [h_all[side].sum(0) for side in sides]
                    if any(x.sum() < self.min_h * outputs for x in h):
                        continue
                    total = self.both_scores(node, f, [g_all[side].sum(0) for side in sides], h)
                    # The core may round the last bit differently.
                    if total is not None and total > best + 1e-13 * abs(best):
                        best = total
                        node.gain, node.feature = total - own, f
                        node.levels = None
                        node.bin = self.middle(f, code[~left & ~missing], b)
                        node.missing_left = missing_left
                        if not missing.any():
                            node.missing_left = 2 * h[0].sum() >= h_all.sum()

    def level_sets(self, g, h):
        """Return candidate level sets, by number, and the L2 penalty of a set split in units.

        g and h are the sums of each level that occurs, (levels, outputs).
        """
        s = self.settings
        if len(g) <= s.max_cat_to_onehot:
            return [[level] for level in range(len(g))], 0.0
        is_rare = h.sum(axis=1) < s.min_cat_weight / self.h_unit * h.shape[1]
        groups = [[level] for level in np.flatnonzero(~is_rare).tolist()]
        if is_rare.any():
            groups.append(np.flatnonzero(is_rare).tolist())  # rare levels form one group
        g, h = (np.array([x[group].sum(axis=0) for group in groups]) for x in (g, h))
        n, smooth = len(groups), s.cat_smooth / self.h_unit
        with np.errstate(invalid="ignore", divide="ignore"):
            keys = np.where(h + smooth > 0, g / (h + smooth), 0.0)
        sets = []
        for k in range(g.shape[1]):
            order = sorted(range(n), key=lambda level, k=k: (keys[level, k], level))
            sets += [
                [level for group in order[:size] for level in groups[group]]
                for size in range(1, n)
                if min(size, n - size) <= s.max_cat_threshold
            ]
        return sets, s.cat_l2 / self.h_unit

    def best_set(self, node, f, code, own, best):
        """Search a categorical feature; return the best score so far, and store it in the node."""
        s, units = self.settings, self.units[node.rows]
        occurring = [c for c in np.unique(code).tolist() if units[code == c].any()]
        sums = np.array([units[code == c].sum(0) for c in occurring]).reshape(len(occurring), -1, 2)
        counts = np.array([(code == c).sum() for c in occurring])
        totals, outputs = sums.sum(0), sums.shape[1]
        sets, extra = self.level_sets(sums[:, :, 0], sums[:, :, 1])
        penalised = self.own_score(node, totals[:, 0], totals[:, 1], extra)
        for chosen in sets:
            left = sums[chosen].sum(0)
            sides = [left, totals - left]
            n_left = counts[chosen].sum()
            if min(n_left, len(code) - n_left) < s.min_samples_leaf:
                continue
            if any(side[:, 1].sum() < self.min_h * outputs for side in sides):
                continue
            gain = sum(self.own_score(node, side[:, 0], side[:, 1], extra) for side in sides)
            total = gain + (own - penalised)
            if total > best + 1e-13 * abs(best):
                best = total
                node.gain, node.feature, node.bin = total - own, f, 0
                levels = {occurring[i] for i in chosen}
                node.missing_left = self.n_bins[f] in levels
                if self.n_bins[f] not in occurring:
                    node.missing_left = 2 * left[:, 1].sum() >= totals[:, 1].sum()
                if node.missing_left:  # absent levels go with missing values
                    levels |= set(range(256)) - set(occurring)
                node.levels = frozenset(levels)
        return best

    def middle(self, f, right, b):
        """Return the bin with the same split as b and the edge nearest to the middle of the gap."""
        if len(right) == 0:
            return self.n_bins[f] - 1
        edges = self.edges[f][b : right.min()]
        return b + int(np.argmin(np.abs(edges - (edges[0] / 2 + edges[-1] / 2))))

    def grow(self):
        """Return the nodes by id, split in the order of the growth policy."""
        s = self.settings
        root = Node(np.arange(len(self.codes)), 0, 0)
        self.best_split(root)
        nodes, waiting, leaves = [root], [root], 1
        while leaves < s.max_leaves:
            waiting = [node for node in waiting if node.gain > 0]
            if not waiting:
                break
            node = min(waiting, key=lambda x: (-x.gain if s.best_first else x.depth, x.id))
            waiting.remove(node)
            code = self.codes[node.rows, node.feature]
            left = code <= node.bin
            left |= (code == self.n_bins[node.feature]) & node.missing_left
            if node.levels is not None:
                left = np.isin(code, list(node.levels))
            for side, bounds in zip((left, ~left), self.child_bounds(node, left), strict=True):
                child = Node(
                    node.rows[side],
                    node.depth + 1,
                    len(nodes),
                    path=node.path | {node.feature},
                    bounds=bounds,
                )
                self.best_split(child)
                node.children.append(child)
                nodes.append(child)
                waiting.append(child)
            leaves += 1
        return nodes

    def child_bounds(self, node, left):
        """Return the step bounds of both children, separated by the middle of their steps."""
        low, high = node.bounds
        direction = self.settings.monotone[node.feature] if self.settings.monotone else 0
        if direction == 0:
            return (low, high), (low, high)
        sums = [self.units[node.rows[side], 0].sum(0) for side in (left, ~left)]
        middle = sum(self.step(g, h, node.bounds) for g, h in sums) / 2
        sides = (low, middle), (middle, high)
        return sides if direction > 0 else sides[::-1]

    def leaf_value(self, node):
        """Return the leaf value from fixed-point integers, exact up to the last division."""
        s = self.settings
        g = self.fixed[node.rows, :, 0].sum(0) * 2.0 ** -self.exponents[0]
        h = self.fixed[node.rows, :, 1].sum(0) * 2.0 ** -self.exponents[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            step = np.maximum(np.abs(g) - s.reg_alpha, 0) / (h + s.reg_lambda)
        step = np.where(h + s.reg_lambda > 0, step, 0.0)
        if s.max_delta_step > 0:
            step = np.minimum(step, s.max_delta_step)
        unit = self.g_unit / self.h_unit
        return np.clip(-np.sign(g) * step, node.bounds[0] * unit, node.bounds[1] * unit)
