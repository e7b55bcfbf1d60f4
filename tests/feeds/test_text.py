"""Random words: their lengths, their letters, the same for an index in any company."""

import re

import numpy as np

from penstock.feeds.counter import Draws
from penstock.feeds.text import words

INDEX = np.arange(3_000)


def test_lengths_are_from_three_to_below_the_limit() -> None:
    found = words(Draws(1, "w"), INDEX, 20).to_pylist()
    assert {len(word) for word in found} == set(range(3, 20))
    assert all(re.fullmatch("[a-z]+", word) for word in found)


def test_spaces_lie_within() -> None:
    found = words(Draws(1, "s"), INDEX, 100, spaces=True).to_pylist()
    assert all(re.fullmatch("[a-z][a-z ]*[a-z]", text) for text in found)
    together = "".join(found)
    assert 0.06 < together.count(" ") / len(together) < 0.09


def test_all_letters_are_about_alike() -> None:
    together = "".join(words(Draws(1, "l"), INDEX, 100).to_pylist())
    shares = [together.count(chr(letter)) / len(together) for letter in range(97, 123)]
    assert min(shares) > 0.8 / 26 and max(shares) < 1.2 / 26


def test_a_word_depends_on_its_index_only() -> None:
    draws = Draws(1, "i")
    alone = words(draws, INDEX[1_000:1_010], 30, spaces=True)
    assert alone.equals(words(draws, INDEX, 30, spaces=True).slice(1_000, 10))


def test_no_words() -> None:
    assert words(Draws(1, "n"), INDEX[:0], 30).to_pylist() == []
