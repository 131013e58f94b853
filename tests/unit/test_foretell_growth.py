"""What ./dev soak calls growth."""

import sys

import pytest
from machine import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from foretell.growth import growth


@pytest.mark.parametrize("samples,grown", [
    ([100] * 40, 0),
    ([100, 140, 180, 200, *[200] * 36], 0),
    ([100 + number for number in range(100)], 50),
    ([100 + number % 7 for number in range(100)], 0),
    ([1000] * 60 + [1100] * 60, 100),
    ([200 - number for number in range(100)], 0),
])
def test_a_trend_is_growth_and_a_warm_up_or_noise_is_not(samples, grown):
    assert growth(samples, grain=4).grown == grown


def test_within_the_grain_nothing_has_grown():
    samples = [1000] * 60 + [1003] * 60
    assert growth(samples, grain=4).grown == 0 and growth(samples, grain=2).grown == 3


def test_too_few_samples_say_nothing():
    assert growth([1, 2, 3, 4, 5, 6, 7, 8, 9], grain=1) is None
