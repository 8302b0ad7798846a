"""Student's t distribution, in the standard library's arithmetic."""

from __future__ import annotations

from math import exp, lgamma, log

_TERMS = 10_000
_PRECISION = 1e-15


def student_p(t: float, freedom: float) -> float:
    """The two-sided probability of ``t`` or more with so many degrees of freedom, also far in the tails."""
    whole = freedom + t * t
    return _incomplete_beta(freedom / 2, 0.5, freedom / whole, t * t / whole)


def student_quantile(probability: float, freedom: float) -> float:
    """The ``t`` that a value lies below with this probability, 0 to 1 exclusive."""
    tail = 2 * min(probability, 1 - probability)
    low, high = 0.0, 1.0
    while student_p(high, freedom) > tail:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > tail else (low, middle)
    return high if probability > 0.5 else -high


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised incomplete beta function of ``x``, ``rest`` being 1 - x (Abramowitz and Stegun 26.5.8)."""
    if x == 0 or rest == 0:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, rest, x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)) / a
    return front * (_fraction(a, b, x) - 1)


def _fraction(a: float, b: float, x: float) -> float:
    """1 and the continued fraction, by Lentz's method."""
    numerator, denominator, value = 1.0, 0.0, 1.0
    for term in range(_TERMS):
        m = term // 2
        if term == 0:
            step = 1.0
        elif term % 2 == 0:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        denominator = 1 / (1 + step * denominator)
        numerator = 1 + step / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION:
            break
    return value
