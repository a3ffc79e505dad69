"""Pools, their figures, and their files: a JSON line a question with id, gold, answers, tokens and perhaps signals."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import PoolError
from suffice.jsonl import json_lines, quoted, read_unpacked
from suffice.notebook import bars, frame, many, short, table
from suffice.paths import is_there
from suffice.tally import NONE, FloatArray, IntArray, Tally

ABSENT = -2
"""The code of an answer that no response gave."""

LONGEST = 2**53
"""No response has more tokens than this: sums of them stay exact."""

LARGEST_SIGNAL = 1e100
"""No signal is larger than this: sums of squares stay finite."""


@dataclass(frozen=True)
class Question:
    """One question: its gold answer if known, and the answer and tokens of each response drawn beforehand.

    Structured answers are JSON, written in one spelling.

    >>> Question("q1", gold="7", answers=("7", None, "8"), tokens=(20, 35, 31)).labels
    ('7', '8')
    """

    id: str
    gold: str | None
    answers: tuple[str | None, ...]
    tokens: tuple[int | None, ...] | None
    extra: dict[str, Any] = field(default_factory=dict)
    structured: bool = False
    """Whether the answers have fields."""
    signals: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """By name, a number for each response, None where it isn't known."""

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The labels of a structured question as objects and lists."""
        return tuple(json.loads(answer) for answer in self.labels)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The different answers, in order of first appearance; an answer's code is its place here."""
        return tuple(dict.fromkeys(answer for answer in self.answers if answer is not None))

    @cached_property
    def codes(self) -> IntArray:
        """The code of each response's answer, NONE for none."""
        codes: dict[str | None, int] = {answer: code for code, answer in enumerate(self.labels)}
        return np.array([codes.get(answer, NONE) for answer in self.answers], np.intp)

    @cached_property
    def token_counts(self) -> IntArray:
        """The tokens of each response, 0 where they are not known."""
        return np.array([count or 0 for count in self.tokens or (0,) * len(self.answers)], np.int64)

    @cached_property
    def lengths(self) -> FloatArray:
        """The tokens of each response, NaN where they are not known."""
        return np.array(self.tokens or (None,) * len(self.answers), float)

    @cached_property
    def signal_values(self) -> dict[str, FloatArray]:
        """The signals as arrays, NaN where they are not known."""
        return {name: np.array(column, float) for name, column in self.signals.items()}

    @cached_property
    def majority(self) -> str | None:
        """The answer that a vote over all of its responses elects."""
        tally = Tally(len(self.answers))
        tally.add_round(self.answers)
        return tally.leader

    @cached_property
    def entropy(self) -> float:
        """How much its answers differ, in nats; 0 where all are the same, or there are none."""
        counts = np.bincount(self.codes[self.codes != NONE])
        shares = counts[counts > 0] / max(counts.sum(), 1)
        return float(-(shares * np.log(shares)).sum()) + 0.0

    @cached_property
    def share_right(self) -> float | None:
        """The share of its responses that is right; None where that is not known, or there are none."""
        if self.gold is None or not self.answers:
            return None
        return float((self.codes == self.code(self.gold)).mean())

    def __repr__(self) -> str:
        answers = f"{many(len(self.answers), 'response')} with {many(len(self.labels), 'different answer')}"
        return f"Question({short(repr(self.id))}, gold={short(repr(self.gold))}, {answers})"

    def _repr_html_(self) -> str:
        counts = {label: self.answers.count(label) for label in self.labels}
        counts = dict(sorted(counts.items(), key=lambda one: -one[1]))
        return bars(f"{self!r}", counts, len(self.answers))

    def code(self, answer: str | None) -> int:
        """The code of an answer: NONE for none, and ABSENT for what no response gave."""
        if answer is None:
            return NONE
        return self.labels.index(answer) if answer in self.labels else ABSENT


@dataclass(frozen=True)
class Pool:
    """One model on one benchmark; `sha256` is that of the file it came from, uncompressed.

    >>> pool = Pool("mine", (Question("q1", "7", ("7", None, "8"), None),))
    >>> pool
    Pool('mine', 1 question × 3 responses)
    >>> pool.check_budget(3)
    >>> len(pool), [question.id for question in pool]
    (1, ['q1'])
    """

    name: str
    questions: tuple[Question, ...]
    sha256: str = ""

    def __post_init__(self) -> None:
        if not self.questions:
            raise PoolError(f"{self.name}: there are no questions in it; a pool has a JSON line a question")

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __repr__(self) -> str:
        sizes = [len(question.answers) for question in self.questions]
        each = many(max(sizes), "response") if min(sizes) == max(sizes) else f"{min(sizes)}–{max(sizes)} responses"
        return f"Pool({self.name!r}, {many(len(self), 'question')} × {each})"

    def _repr_html_(self) -> str:
        headings = ["question", "gold", "most votes", "share %", "different answers", "responses"]
        rows = []
        for question in self.questions:
            first = max(question.labels, key=question.answers.count, default=None)
            share = 100 * question.answers.count(first) / max(len(question.answers), 1) if first is not None else None
            cells = (question.gold, first, share, len(question.labels), len(question.answers))
            rows.append([question.id, *cells])
        return table(repr(self), headings, rows)

    def filter(self, keep: Callable[[Question], bool]) -> "Pool":
        """The pool with some of its questions alone.

        Args:
            keep: Says of a question whether it stays.

        Raises:
            PoolError: Where none stays.

        >>> pool = load_pool("smollm2-135m__arithmetic")
        >>> len(pool.filter(lambda question: question.gold in question.answers)) < len(pool)
        True
        """
        return Pool(self.name, tuple(question for question in self.questions if keep(question)))

    def with_majorities(self) -> "Pool":
        """The pool with the majority of all of a question's responses in the place of its gold answer."""
        return replace(self, questions=tuple(replace(one, gold=one.majority) for one in self.questions))

    def to_pandas(self) -> Any:
        """A row a response, in a data frame of pandas: question, draw, answer, tokens, gold, and its signals."""
        return frame("pandas", self._columns())

    def to_polars(self) -> Any:
        """The same as `to_pandas`, in a data frame of polars."""
        return frame("polars", self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        signals = dict.fromkeys(name for question in self.questions for name in question.signals)
        columns: dict[str, list[Any]] = defaultdict(list)
        for question in self.questions:
            size = len(question.answers)
            none = [None] * size
            columns["question"] += [question.id] * size
            columns["draw"] += range(size)
            columns["answer"] += question.answers
            columns["tokens"] += question.tokens or none
            columns["gold"] += [question.gold] * size
            for name in signals:
                known = question.signals.get(name, none)
                columns[name] += [None if value is None else float(value) for value in known]
        return columns

    def check_budget(self, budget: int) -> None:
        """Refuse a budget that some question has too few answers for."""
        for question in self.questions:
            if len(question.answers) < budget:
                raise PoolError(
                    f"{self.name}: question {quoted(question.id)} has {len(question.answers)} answers, "
                    f"fewer than the budget of {budget}; collect more, or lower it (--budget)"
                )


AnyPool = str | Path | Pool
"""A pool, or the name of a bundled one, or the path of any other."""


def bundled_pools() -> dict[str, Path]:
    """The pools that come with the package, by name.

    >>> "smollm2-135m__arithmetic" in bundled_pools()
    True
    """
    folder = Path(str(files("suffice.pools") / "bundled"))
    return {path.name.removesuffix(".jsonl.gz"): path for path in sorted(folder.glob("*.jsonl.gz"))}


def load_pool(path_or_name: str | Path) -> Pool:
    """Load a pool.

    Args:
        path_or_name: The name of a bundled one, or the path of any other, a .jsonl or .jsonl.gz file.

    Raises:
        PoolError: Where there is none of that name, or a line of the file is wrong.

    >>> len(load_pool("smollm2-135m__arithmetic").questions)
    40
    """
    bundled = bundled_pools()
    path = bundled.get(str(path_or_name)) or Path(path_or_name)
    if not is_there(path):
        asked = path.name.removesuffix(".jsonl")
        near = [name for name in bundled if len(asked) > 3 and asked in name] or get_close_matches(
            asked, bundled, n=1, cutoff=0.8
        )
        hint = f"did you mean {' or '.join(near)}?" if near else '"suffice pools" lists the bundled ones'
        raise PoolError(f"{path_or_name}: no such file, nor a bundled pool of that name; {hint}")
    questions: dict[str, Question] = {}
    data = read_unpacked(path, PoolError)
    for place, record in json_lines(path, data, PoolError, "id, gold, answers and tokens"):
        try:
            question = _question(record)
        except ValueError as error:
            raise PoolError(f"{place}: {error}") from None
        if question.id in questions:
            raise PoolError(f"{place}: the id {quoted(question.id)} was used before; ids must differ")
        questions[question.id] = question
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return Pool(name, tuple(questions.values()), hashlib.sha256(data).hexdigest())


def signal_columns(responses: Iterable[Mapping[str, float]]) -> dict[str, list[float | None]]:
    """The field "signals" of a pool's line, from the signals of each response.

    >>> signal_columns([{"logprob": -0.1}, {}, {"logprob": -0.3, "tail": 9.5}])
    {'logprob': [-0.1, None, -0.3], 'tail': [None, None, 9.5]}
    """
    rows = list(responses)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def get_pool(pool: AnyPool) -> Pool:
    """The pool that a name or a path stands for; a pool is returned as it is."""
    return pool if isinstance(pool, Pool) else load_pool(pool)


def get_pools(pools: AnyPool | Iterable[AnyPool]) -> list[Pool]:
    """One pool or several, each as `get_pool` takes them."""
    return [get_pool(pools)] if isinstance(pools, str | Path | Pool) else [get_pool(pool) for pool in pools]


@dataclass(frozen=True)
class Summary:
    """One pool in figures: shares in percent, entropy in nats, None where the pool can't tell.

    >>> summary = summarise("smollm2-135m__arithmetic")
    >>> summary.questions, summary.samples
    (40, (64, 64))
    """

    pool: str
    questions: int
    samples: tuple[int, int]
    one_sample_accuracy: float | None
    majority_accuracy: float | None
    entropy: float
    none_share: float
    mean_tokens: float | None
    tokens_95: float | None


def summarise(pool: AnyPool) -> Summary:
    """Describe a pool; the majority is that of all its samples.

    Args:
        pool: A `Pool`, the name of a bundled one, or a path.

    Raises:
        PoolError: Where there is no such pool, or its file is wrong.

    >>> round(summarise("smollm2-135m__arithmetic").majority_accuracy)
    50
    """
    pool = get_pool(pool)
    one_sample = [question.share_right for question in pool.questions if question.share_right is not None]
    majority = [one.majority == one.gold for one in pool.questions if one.share_right is not None]
    answers = [answer for question in pool.questions for answer in question.answers]
    tokens = [count for question in pool.questions for count in question.tokens or () if count is not None]
    sizes = [len(question.answers) for question in pool.questions]
    return Summary(
        pool=pool.name,
        questions=len(pool.questions),
        samples=(min(sizes), max(sizes)),
        one_sample_accuracy=100 * float(np.mean(one_sample)) if one_sample else None,
        majority_accuracy=100 * float(np.mean(majority)) if majority else None,
        entropy=float(np.mean([question.entropy for question in pool.questions])),
        none_share=100 * answers.count(None) / max(len(answers), 1),
        mean_tokens=float(np.mean(tokens)) if tokens else None,
        tokens_95=float(np.percentile(tokens, 95)) if tokens else None,
    )


def _question(record: dict[str, Any]) -> Question:
    """One line of a pool; ValueError says what is wrong with it."""
    for name in ("id", "gold", "answers", "tokens"):
        if name not in record:
            may_be_null = "" if name in ("id", "answers") else "; it may be null"
            raise ValueError(f'the field "{name}" is missing{may_be_null}')
    identity, gold, answers, tokens = (record.pop(name) for name in ("id", "gold", "answers", "tokens"))
    _check(isinstance(identity, str), '"id" must be a string', identity)
    _check(isinstance(answers, list), '"answers" must be a list of strings and nulls', answers)
    structured = any(isinstance(answer, dict | list) for answer in [gold, *answers])
    if structured:
        for answer in [gold, *answers]:
            holds = answer is None or isinstance(answer, dict | list)
            _check(holds, "where one answer is an object or a list, all must be, or null", answer)
        gold, *answers = (
            None if answer is None else json.dumps(answer, ensure_ascii=False, sort_keys=True)
            for answer in [gold, *answers]
        )
    _check(gold is None or isinstance(gold, str), '"gold" must be a string or null', gold)
    for answer in answers:
        _check(answer is None or isinstance(answer, str), '"answers" must hold strings and nulls alone', answer)
    signals = record.pop("signals", None)
    _check(signals is None or isinstance(signals, dict), '"signals" must be null or an object of lists', signals)
    for name, column in (signals or {}).items():
        where = f'"signals", {quoted(name)}'
        _check(isinstance(column, list), f"{where} must be a list of numbers and nulls", column)
        for value in column:
            number = type(value) in (int, float) and abs(value) <= LARGEST_SIGNAL
            _check(value is None or number, f"{where} must hold finite numbers and nulls alone", value)
        _check_length(where, column, answers)
    if tokens is not None:
        _check(isinstance(tokens, list), '"tokens" must be null or a list of integers and nulls', tokens)
        for count in tokens:
            _check(count is None or type(count) is int, '"tokens" must hold integers and nulls alone', count)
            _check(count is None or 0 <= count <= LONGEST, f'"tokens" must lie between 0 and {LONGEST}', count)
        _check_length('"tokens"', tokens, answers)
        tokens = tuple(tokens)
    columns = {name: tuple(column) for name, column in (signals or {}).items()}
    return Question(identity, gold, tuple(answers), tokens, record, structured, columns)


def _check(holds: bool, rule: str, found: object) -> None:
    if not holds:
        raise ValueError(f"{rule}, not {quoted(found)}")


def _check_length(name: str, column: list[Any], answers: list[Any]) -> None:
    if len(column) != len(answers):
        raise ValueError(f'"answers" has {len(answers)} entries and {name} {len(column)}; they must be as many')
