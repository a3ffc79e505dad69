"""The keys of one question's answers: two responses with the same key agree."""

import re
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass
from fractions import Fraction

from suffice.answers.words import NO
from suffice.killable import SECONDS, Lane
from suffice.normalise import normalise, structure

MOMENT = 0.25  # seconds of processor time in the quick lane: ten times what common answers take
BUDGET = 8.0  # seconds of a vote in the slow lane, waiting and starts of workers included
STRIKES = 2  # comparisons that were too slow, after which an answer is compared as written


QUICK = Lane("equal", MOMENT)
SLOW = Lane("equal", SECONDS)


@dataclass(frozen=True)
class FormulaComparison:
    """A request to compare two forms, and the seconds to wait for it."""

    a: str
    b: str
    lane: Lane
    patience: float | None = None

    def begin(self) -> "Future[bool | None]":
        return self.lane.submit("equal", structure(self.a), structure(self.b))


LONGEST_FORMULA = 300
DEEPEST_FORMULA = 12  # beyond, formulas are compared as written

_NUMBER = re.compile(r"-?\d+(?:\.\d+|/0*[1-9]\d*)?")
_NO_FORMULA = re.compile(r"\d+(?:-\d+)+|\d+[^\W\d_]\d+")  # dates, telephone numbers, 3R2
_HUGE = re.compile(r"\^\{?[^{}^]*\^|\^\{?-?\d{4,}|\d{3,}\s*!|!\s*!|\d{60,}")


class Keys:
    r"""The keys seen so far; an answer joins the first-seen key that it equals, or is its own where they are exact.

    >>> keys = Keys()
    >>> [keys.key(answer) for answer in (r"\frac12", "0.5", r"\sqrt{12}", r"2\sqrt{3}", r"50\%")]
    ['0.5', '0.5', '\\sqrt{12}', '\\sqrt{12}', '0.5']
    """

    def __init__(self, exact: bool = False) -> None:
        self._exact = exact
        self._keys: dict[str, str] = {}
        self._percents_settled: set[str] = set()
        self._seconds_left = BUDGET
        self._was_slow = False
        self._strikes: Counter[str] = Counter()

    def key(self, answer: str | None) -> str | None:
        """The key of an answer as it was written; None for none."""
        finding = self.finding(answer)
        try:
            comparison = next(finding)
            while True:
                comparing = comparison.begin()
                try:
                    comparison = finding.send(comparing.result(comparison.patience))
                except TimeoutError:
                    comparing.cancel()
                    comparison = finding.send(None)
        except StopIteration as found:
            key: str | None = found.value
            return key

    def finding(self, answer: str | None) -> Generator[FormulaComparison, bool | None, str | None]:
        """Find a key: whoever does that is asked for comparisons, and sends back what they come to."""
        if self._exact:
            return answer
        form = None if answer is None else normalise(answer)
        if form is None:
            return None
        if form not in self._keys:
            self._keys[form] = self._percent_twin(form) or (yield from self._equal(form)) or form
        return self._keys[form]

    def find(self, answer: str | None) -> str | None:
        """The key that an answer would get, without adding it: for comparing with gold."""
        there = copy(self)
        there.__dict__ |= {name: copy(seen) for name, seen in vars(self).items() if isinstance(seen, dict | set | list)}
        there._seconds_left = BUDGET
        return there.key(answer)

    def _percent_twin(self, form: str) -> str | None:
        """Return the key of 50 or 0.5 for 50 %, or the other way about."""
        number = form.removesuffix("%")
        if len(number) > LONGEST_FORMULA or not _NUMBER.fullmatch(number):
            return None
        if form.endswith("%"):
            meanings = (number, normalise(str(Fraction(number) / 100)))
            twin = next((key for seen, key in self._keys.items() if seen in meanings), None)
        else:
            percents = (f"{number}%", f"{normalise(str(Fraction(number) * 100))}%")
            twin = next((seen for seen in self._keys if seen in percents and seen not in self._percents_settled), None)
            form = twin or form
        if twin:
            self._percents_settled.add(form)
        return twin

    def _equal(self, form: str) -> Generator[FormulaComparison, bool | None, str | None]:
        if not _may_equal_others(form):
            return None
        for other in [seen for seen in self._keys if _comparable(seen, form)]:
            if (yield from self._same(other, form)):
                return self._keys[other]
        return None

    def _same(self, a: str, b: str) -> Generator[FormulaComparison, bool | None, bool]:
        """Whether two forms are equal; those that are too slow to compare are not."""
        if max(self._strikes[a], self._strikes[b]) >= STRIKES:
            return False
        if not self._was_slow:
            equal = yield FormulaComparison(a, b, QUICK)
            if equal is not None:
                return equal
            self._was_slow = True
        if self._seconds_left <= 0:
            return False
        begun = time.monotonic()
        equal = yield FormulaComparison(a, b, SLOW, self._seconds_left)
        self._seconds_left -= time.monotonic() - begun
        if equal is None:
            self._strikes.update((a, b))
        return bool(equal)


class WordKeys(Keys):
    """Keys of short answers in words: two agree if one has all words of the other, without those that are known."""

    def __init__(self, known: frozenset[str]) -> None:
        super().__init__()
        self._known = known
        self._words: dict[str, frozenset[str]] = {}

    def finding(self, answer: str | None) -> Generator[FormulaComparison, bool | None, str | None]:
        key = yield from super().finding(answer)
        words = frozenset(_WORDS.findall((key or "").casefold())) - self._known
        for other, seen in self._words.items():
            is_part = words and (words <= seen or seen <= words) and not any(map(_counts, words ^ seen))
            if key == other or is_part:
                return other
        if key is not None:
            self._words[key] = words or frozenset([key])
        return key


_WORDS = re.compile(r"[-−]?\d[\d.,:/-]*|[^\W\d_][\w'’-]*")


def _counts(word: str) -> bool:
    """Whether a word more makes another answer: a number, a no."""
    return any(map(str.isdigit, word)) or NO.are(word)


def _may_equal_others(form: str) -> bool:
    """Whether a form is a formula that is safe to compute."""
    depth = deepest = 0
    for character in form[:LONGEST_FORMULA]:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if len(form) > LONGEST_FORMULA or deepest > DEEPEST_FORMULA or _HUGE.search(form) or _NO_FORMULA.fullmatch(form):
        return False
    return any(character.isdecimal() or character in "\\^=<>+*/-" for character in form)


def _comparable(a: str, b: str) -> bool:
    both_numbers = _NUMBER.fullmatch(a) and _NUMBER.fullmatch(b)
    return not both_numbers and _may_equal_others(a) and _kind(a) == _kind(b)


def _kind(form: str) -> tuple[object, ...]:
    """Return what equal forms have in common: variables, words, indices and signs."""
    plain = re.sub(r"\\[A-Za-z]+", " ", form)
    runs = re.findall(r"[^\W\d_]+", plain)
    variables = frozenset(run for run in runs if len(run) == 1)
    words = tuple(sorted(run for run in runs if len(run) > 1))
    indices = tuple(sorted(re.findall(r"_(\w|\{[^{}]*\})", form)))
    return variables, words, indices, "%" in form, ":" in form, "=" in form
