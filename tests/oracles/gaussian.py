"""Gaussian noise of two users: one message in closed form, a difference of normal tails, the other by quadrature."""

import mpmath as mp

HALF = mp.mpf("0.5")


class TwoUsers:
    """Delta by quadrature; ``blanket`` tells the reference law, else both other users hold 1."""

    def __init__(self, noise_std, epsilon, blanket):
        self.s, self.factor, self.blanket = mp.mpf(noise_std), mp.exp(epsilon), blanket
        self.mass = 2 * mp.ncdf(-1 / (2 * self.s)) if blanket else mp.mpf(1)

    def delta(self):
        marks = [HALF + self.s * step for step in (-14, -9, -6, -3, 0, 3, 6, 10)]
        # Where the other loss must fall at its kink, or may fall anywhere, the integrand is not analytic.
        kink = self.threshold(self.loss(HALF) if self.blanket else -self.factor)
        both = mp.quad(lambda y: self.price(self.loss(y)) * self.density(y), sorted([*marks, kink]), maxdegree=5)
        return ((1 - self.mass) * 2 * self.price(mp.mpf(0)) + self.mass * both) / 2

    def loss(self, y):
        lift = (1 - 2 * y) / (2 * self.s**2)
        if self.blanket:
            return self.mass * (mp.exp(max(lift, 0)) - self.factor * mp.exp(max(-lift, 0)))
        return mp.exp(lift) - self.factor

    def density(self, y):
        return mp.npdf(y, 0 if self.blanket and y > HALF else 1, self.s) / self.mass

    def threshold(self, shift):
        """Where the falling loss equals minus the shift, at most so far out that no normal tail is left."""
        far = 200 * (1 + self.s)
        if self.blanket:
            sought = -shift / self.mass
            ratio = sought + self.factor if sought + self.factor >= 1 else self.factor / (1 - sought)
        else:
            ratio = self.factor - shift
        return min(HALF - self.s**2 * mp.log(ratio), far) if ratio > 0 else far

    def price(self, shift):
        """Mean of the positive part of one loss and the shift, under the reference law."""
        y = self.threshold(shift)
        reference = mp.ncdf((min(y, HALF) - 1) / self.s) if self.blanket else mp.ncdf((y - 1) / self.s)
        if self.blanket:
            reference += mp.ncdf(max(y, HALF) / self.s) - mp.ncdf(HALF / self.s)
        gain = mp.ncdf(y / self.s) - self.factor * mp.ncdf((y - 1) / self.s)
        return gain + shift * reference / self.mass
