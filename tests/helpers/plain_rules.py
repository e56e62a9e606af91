"""The rule of the method `recoup` written out once more, for one run, straight from its formulas.

It shares no code with `recoup.core.rules`: a covariance is a matrix that is inverted, a step of the
spread a matrix exponential, weights are sums over batches, ranks are counted one by one.
"""

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq


class Plain:
    """Mean and covariance of a search, and all batches it was told."""

    def __init__(
        self, mean, std, share=None, prior=1.0, pulled=False, most=0.7, shrink=0.25, repeats=True
    ):
        self.mean, self.share, self.prior = np.array(mean, float), share, prior
        self.pulled, self.most, self.shrink = pulled, most, shrink
        self.repeats = repeats and share is None
        self.pairs, self.luck, self.wanted = 0, 0.0, False
        self.dim = self.mean.size
        self.full = 2 <= self.dim <= 50
        self.start = float(std)
        self.factor = np.eye(self.dim) * std
        self.batches = []  # theta, returns, mean, factor
        self.hyper = np.log([prior * self.dim, 0.1, 1.0])
        self.evident, self.signal, self.variance = False, np.zeros(self.dim), 0.0

    def tell(self, theta, returns):
        self.batches.append((theta, np.asarray(returns, float), self.mean, self.factor))
        every = np.concatenate([batch[1] for batch in self.batches])
        flat = self.batches[-1][1].size > 1 and np.ptp(every) == 0
        one_mean, one_log = self.regression()
        other_mean, other_log = self.weighting()
        share = self.reliable * (1 - self.ties) if self.share is None else self.share
        spread = min(share, self.most) if self.share is None else share
        bold_mean, bold_log = self.fitted()
        bold = self.boldness()
        if self.widens and share > 0:
            share, spread, bold = 1.0, 1.0, 0.0
        self.bold = bold
        delta = share * one_mean + (1 - share) * other_mean
        log = spread * one_log + (1 - spread) * other_log
        delta, log = (1 - bold) * delta + bold * bold_mean, (1 - bold) * log + bold * bold_log
        if flat:
            delta, log = 0 * delta, 0.2 * np.eye(self.dim)
        self.hyper[0] -= 2 * np.trace(log) / self.dim
        self.mean = self.mean + self.factor @ delta
        self.factor = self.factor @ expm(log)
        if self.full:
            self.factor = np.linalg.cholesky(self.factor @ self.factor.T)
        else:
            self.factor = np.diag(np.maximum(np.diag(self.factor), 1e-3 * self.start))

    @property
    def grown(self):
        return np.log(np.diag(self.factor)) - np.log(self.start)

    # -- the regression's half --

    def kernel(self, hyper):
        length, noise, bowl = np.exp(hyper)
        away = self.z[:, None] - self.z
        linear = self.centred @ self.centred.T
        k = 3 + np.exp(-(away**2).sum(-1) / (2 * length))
        k = k + (3 * linear + bowl * np.outer(self.bowl, self.bowl)) / length
        return k + (noise + 1e-9) * np.eye(len(k))

    def log_evidence(self, hyper):
        k, n = self.kernel(hyper), self.y.size
        quadratic = self.y @ np.linalg.solve(k, self.y)
        return -(n + 2) / 2 * np.log((quadratic + 2) / (n + 2)) - np.linalg.slogdet(k)[1] / 2

    def score(self, hyper):
        middle = np.log([self.prior * self.dim, 0.1, 1.0])
        return self.log_evidence(hyper) - (((hyper - middle) / [1, 3, 1.5]) ** 2).sum() / 2

    def fit_hyper(self):
        n, d = self.y.size, self.dim
        low, high = np.log([0.3 * d, 1e-6, 1e-300]), np.log([1000 * d, 1e3, 1e300])
        score = self.score(self.hyper)
        for j in range(3) if n <= 50 else [len(self.batches) % 3]:
            for way in (1, -1):
                tried = self.hyper.copy()
                tried[j] = np.clip(tried[j] + way * np.log([1.5, 2, 2])[j], low[j], high[j])
                if (found := self.score(tried)) > score:
                    self.hyper, score = tried, found

    def regression(self):
        keep = 100 + 2 * self.dim
        theta = np.concatenate([batch[0] for batch in self.batches])[-keep:]
        returns = np.concatenate([batch[1] for batch in self.batches])[-keep:]
        if self.repeats:
            theta, returns = self.candidates(theta, returns)
        middle, high = np.quantile(returns, [0.5, 0.9])
        y = returns
        if y.size >= 8 and high > middle:
            y = np.maximum(y, middle - 6 * (high - middle))
        self.scale = y.std()
        self.y = (y - y.mean()) / max(y.std(), 1e-12)
        self.z = (theta - self.mean) @ np.linalg.inv(self.factor).T
        self.centred = self.z - self.z.mean(0)
        far = (self.centred**2).sum(1) / 2
        self.bowl = far - far.mean()
        self.fit_hyper()
        against = self.log_evidence(self.hyper) + np.log(1 + 3 * y.size) / 2
        self.evident = self.evident or against > 2
        return self.newton()

    def newton(self):
        d, (length, noise, bowl) = self.dim, np.exp(self.hyper)
        inverse, z, mean = np.linalg.inv(self.kernel(self.hyper)), self.z, self.z.mean(0)
        alpha = inverse @ self.y
        signal = (self.y @ alpha + 2) / (self.y.size + 2)
        bump = (length / (1 + length)) ** (d / 2) * np.exp(-(z**2).sum(1) / (2 * (1 + length)))
        both = (length / (length + 2)) ** (d / 2)
        slopes = bump[:, None] * z / (1 + length) + 3 * self.centred / length
        slopes = slopes - bowl * np.outer(self.bowl, mean) / length
        hessian, eye = np.zeros((d, d)), np.eye(d)
        for a, k, q, x in zip(alpha, bump, self.bowl, z, strict=True):
            hessian += a * k * (np.outer(x, x) / (1 + length) ** 2 - eye / (1 + length))
            hessian += a * bowl * q / length * eye
        gradient = slopes.T @ alpha
        covariance = (both / (length + 2) + 3 / length) * eye + bowl * np.outer(mean, mean) / length
        covariance = signal * (covariance - slopes.T @ inverse @ slopes)
        trace = bump * ((z**2).sum(1) / (1 + length) ** 2 - d / (1 + length))
        trace = trace + bowl * d * self.bowl / length
        doubt = both * (d * d + 2 * d) / (length + 2) ** 2 + bowl * d * d / length
        doubt = np.sqrt(max(doubt - trace @ inverse @ trace, 1e-12) * signal) / d
        values, axes = np.linalg.eigh(hessian) if self.full else (np.diag(hessian), eye)
        slope, variance = axes.T @ gradient, np.diag(axes.T @ covariance @ axes)
        variance = np.maximum(variance, 1e-12 * signal)
        prior = both / (length + 2) + 3 / length + bowl * (mean @ axes) ** 2 / length
        known = 1 - variance / (signal * prior)
        self.reliable = known.mean()
        if not self.pulled:
            slope = slope + (1 - known) * bowl * (alpha @ self.bowl) / length * (mean @ axes)
        delta, bounded = self.trusted(values, slope)
        noise = noise * signal
        total = noise + (slope**2 + variance).sum() + (values**2).sum() / 2
        self.unexplained, self.total = noise / total, total
        log = np.clip(values / (2 * np.sqrt(total)), -0.3, 0.3)
        rise, far = (slope * delta).sum(), False
        steady = rise / np.sqrt(max((variance * delta**2).sum(), 1e-30))
        if len(self.batches) > 2 and values.mean() > -1.5 * doubt:
            for reason in (bounded and steady > 1, not self.evident):
                if reason:
                    log = np.maximum(log, 0) + 0.15 * noise / total
        if len(self.batches) > 2 and bounded and steady > 3:
            far = -(delta @ np.diag(values) @ delta) - values.sum() < rise / 2
        if far:
            log = np.full(d, 0.3)
        log = np.minimum(log, max(7 - self.grown.mean(), 0))
        self.widens, self.far = log.min() > 0.01, far
        taken = None
        for pace in (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0):
            step = axes @ self.trusted(values, slope, pace)[0]
            gain, error = self.gain(step, inverse, alpha, signal)
            if taken is None or gain > error:
                taken = step
        return taken, axes @ np.diag(log) @ axes.T

    def gain(self, step, inverse, alpha, signal):
        """Of the expected return by a step, with its standard error: both from what is known."""
        length, _, bowl = np.exp(self.hyper)
        mean, half, none = self.z.mean(0), self.dim / 2, 0 * step
        level = ((self.z - mean) ** 2).sum(1).mean()

        def at(x):
            return (self.dim + (x - mean) @ (x - mean) - level) / 2

        def with_results(x):
            wide, found = length + 1, []
            for z, q in zip(self.z, self.bowl, strict=True):
                bump = (length / wide) ** half * np.exp(-(z - x) @ (z - x) / (2 * wide))
                found.append(
                    bump + 3 * (x - mean) @ (z - mean) / length + bowl * at(x) * q / length
                )
            return np.array(found)

        def with_each_other(x, y):
            wide = length + 2
            bump = (length / wide) ** half * np.exp(-(x - y) @ (x - y) / (2 * wide))
            return bump + 3 * (x - mean) @ (y - mean) / length + bowl * at(x) * at(y) / length

        known = with_results(step) - with_results(none)
        prior = with_each_other(step, step) + with_each_other(none, none)
        left = prior - 2 * with_each_other(step, none) - known @ inverse @ known
        return known @ alpha, np.sqrt(signal * max(left, 1e-12))

    def trusted(self, values, slope, pace=1.0):
        radius = pace * np.sqrt(self.dim + 3) / 2

        def longer(mu):
            return np.linalg.norm(slope / (mu - values)) - radius

        if values.max() < 0 and longer(0.0) <= 0:
            return slope / -values, False
        top = max(values.max(), 0.0)
        if longer(top + 1e-9) <= 0:  # the slope has next to nothing along the steepest axis
            return slope / (top + 1e-9 - values), True
        mu = brentq(longer, top + 1e-9, top + np.linalg.norm(slope) / radius + 2e-9, xtol=1e-15)
        return slope / (mu - values), True

    # -- the weights' half --

    def weighting(self):
        recent = self.batches[-9:]
        near = [batch for batch in recent if self.divergence(*batch[2:]) < np.log(30)]
        theta = np.concatenate([batch[0] for batch in near])
        returns = np.concatenate([batch[1] for batch in near])
        mixture = np.mean([self.density(theta, *batch[2:]) for batch in near], axis=0)
        omega = self.density(theta, self.mean, self.factor) / mixture
        omega = omega / omega.sum()
        largest = max(batch[1].max() for batch in recent)
        c, ties = self.coefficients(omega, returns, largest)
        self.ties = ties
        self.weighed = omega, returns, (theta - self.mean) @ np.linalg.inv(self.factor).T
        z = (theta - self.mean) @ np.linalg.inv(self.factor).T
        fresh = np.arange(len(z)) >= len(z) - len(near[-1][1])
        own = c[fresh] / omega[fresh].sum()
        self.signal = 0.8 * self.signal + 0.2 * own @ z[fresh]
        self.variance = 0.64 * self.variance + 0.04 * (own**2 @ z[fresh] ** 2).sum()
        power = (self.signal**2).sum()
        share = np.clip(1 - self.variance / power, 0, 1) if power > 0 else 0.0
        return self.step(c, z, omega, share, ties, fresh.sum())

    def step(self, c, z, omega, share, ties, batch):
        d = self.dim
        rate, turn = (3 + np.log(d)) / (5 * d**0.5), (9 + 3 * np.log(d)) / (5 * d**1.5)
        ess = 1 / (omega**2).sum()
        delta = (0.85 + 0.85 * share) * (ess / batch) ** 0.3 * c @ z
        shrunk = np.full(d, np.exp(self.grown.mean())) if self.full else np.exp(self.grown)
        h = rate / 4 * c @ (z**2 - 1) - self.shrink * (c**2 @ z**2) * np.minimum(1, shrunk)
        log = (1 + 4 * ties) * np.diag(h)
        if self.full:
            outer = sum(w * np.outer(x, x) for w, x in zip(c, z, strict=True))
            log = log + turn / 4 * (1 + 4 * ties) * (outer - np.diag(np.diag(outer)))
            values, axes = np.linalg.eigh(log)
            return delta, axes @ np.diag(np.clip(values, -0.5, 0.5)) @ axes.T
        return delta, np.clip(log, -0.5, 0.5)

    def coefficients(self, omega, returns, largest):
        mean = omega @ returns
        spread = np.sqrt(omega @ (returns - mean) ** 2)
        standard = omega * (returns - mean) / spread if np.ptp(returns) > 0 else 0 * omega
        worth = []
        for r in returns:
            above = sum(omega[returns > r]) + sum(omega[returns == r]) / 2
            worth.append(max(0.0, -np.log(2 * above)))
        total = omega @ worth
        ranked = omega * worth / total - omega if total > 0 else 0 * omega
        tied = [v for v in set(returns) if v < largest and (returns == v).sum() > 1]
        ties = max((omega[returns == v].sum() for v in tied), default=0.0)
        share = max(0.2, ties)
        return share * ranked + (1 - share) * standard, ties

    def density(self, theta, mean, factor):
        z = (theta - mean) @ np.linalg.inv(factor).T
        return np.exp(-(z**2).sum(1) / 2) / np.linalg.det(factor / self.start)

    def divergence(self, mean, factor):
        """Of the distribution that moves from the one with this mean and factor."""
        p, q = self.factor @ self.factor.T, factor @ factor.T
        gap = 2 * q - p
        if np.linalg.eigvalsh(gap).min() <= 0:
            return np.inf
        away = self.mean - mean
        logs = [np.linalg.slogdet(x)[1] for x in (q, p, gap)]
        return logs[0] - logs[1] / 2 - logs[2] / 2 + away @ np.linalg.inv(gap) @ away

    # -- candidates that were tried twice --

    def candidates(self, theta, returns):
        """Each candidate once, with the mean of what it has earned."""
        earned = {}
        for x, r in zip(theta, returns, strict=True):
            earned.setdefault(x.tobytes(), (x, []))[1].append(r)
        points, means = zip(*((x, np.mean(r)) for x, r in earned.values()), strict=True)
        return np.array(points), np.array(means)

    def boldness(self):
        """What pairs of the newest batch say beside the six remembered, and what follows."""
        if not self.repeats:
            return 0.0
        theta, returns = self.batches[-1][:2]
        known = [self.luck] * min(self.pairs, 6)
        for i in range(len(theta)):
            for j in range(i):
                if (theta[i] == theta[j]).all():
                    known.append((returns[i] - returns[j]) ** 2 / 2)
                    self.pairs += 1
        if known:
            self.luck = float(np.mean(known))
        many = min(self.pairs, 6)
        noise = 1.0
        if many > 1:
            unlikely = [0.103, 0.352, 0.711, 1.145, 1.635][many - 2]
            noise = self.luck / max(self.scale**2 * self.total, 1e-300) * many / unlikely
        bold = float(np.clip(3 * (self.unexplained - noise) - 2, 0, 1)) * (1 - self.ties)
        more = self.pairs < 3 or (bold > 0 and len(self.batches) % 3 == 0)
        self.wanted = more and self.unexplained > 2 / 3
        return bold

    def fitted(self):
        """The best samples' mean and spread: weights tilted by exp(R / eta), a divergence of 1."""
        omega, returns, z = self.weighed
        if np.ptp(returns) == 0:
            return np.zeros(self.dim), np.zeros((self.dim, self.dim))
        worth = (returns - returns.max()) / np.ptp(returns)

        def tilted(log_eta):
            c = omega * np.exp(worth / np.exp(log_eta))
            return c / c.sum()

        def divergence(log_eta):
            c = tilted(log_eta)
            return (c[c > 0] * np.log(c[c > 0] / omega[c > 0])).sum() - 1

        c = tilted(brentq(divergence, -30, 20, xtol=1e-14) if divergence(-30) > 0 else -30)
        mean, alone = c @ z, 1 - (c**2).sum()
        spread = c @ (z - mean) ** 2 / alone if alone > 1e-3 else np.ones(self.dim)
        return mean, np.diag(np.clip(np.log(spread) / 2, -0.5, 0.5))
