"""Voters: a model at a server with a prompt and its settings, and a price; for replays, its pools."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from suffice.errors import OptionError, PoolError
from suffice.pools import Pool, load_pool


@dataclass(frozen=True)
class PoolVoter:
    """A voter whose responses were drawn beforehand: its name, its price for a million tokens, its pool.

    >>> PoolVoter.of("small=smollm2-135m__arithmetic,price=0.1")
    PoolVoter('small', 0.1, Pool('small', 40 questions × 64 responses))
    """

    name: str
    price: float
    pool: Pool

    def __repr__(self) -> str:
        return f"PoolVoter({self.name!r}, {self.price:g}, {self.pool!r})"

    @staticmethod
    def of(text: str) -> "PoolVoter":
        """The voter that `NAME=POOL[+POOL…],price=P` describes."""
        named, comma, priced = text.rpartition(",price=")
        name, equals, paths = named.partition("=")
        if not (comma and equals and name and paths):
            raise OptionError(f'must be NAME=POOL[+POOL…],price=P, not "{text}"', "voter")
        return PoolVoter(name, price_of(priced, "voter"), joined(name, [load_pool(path) for path in paths.split("+")]))


def price_of(text: str | float, argument: str) -> float:
    """A price for a million tokens; in any money."""
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 < price < float("inf"):
        raise OptionError(f'has a price that must be a number above 0, not "{text}"', argument)
    return price


def joined(name: str, pools: Sequence[Pool]) -> Pool:
    """Several pools as one; no question may be in two of them."""
    questions = {question.id: question for pool in pools for question in pool.questions}
    if len(questions) < sum(map(len, pools)):
        raise PoolError(f"{name}: a question's id is in two of its pools; ids must differ")
    return Pool(name, tuple(questions.values()))


def aligned(voters: Iterable[PoolVoter]) -> tuple[PoolVoter, ...]:
    """The voters with the questions that all of them have, in the order of the first.

    Raises:
        OptionError: Where two have one name.
        PoolError: Where they have no question in common, or a response has no count of tokens to be paid for.
    """
    given = tuple(voters)
    if len({voter.name for voter in given}) < len(given) or not given:
        raise OptionError("must be given at least once, and each name only once", "voter")
    common = set.intersection(*({question.id for question in voter.pool} for voter in given))
    if not common:
        raise PoolError(f"{' and '.join(voter.name for voter in given)} have no question in common: ids must be equal")
    order = [question.id for question in given[0].pool if question.id in common]
    found = []
    for voter in given:
        by_id = {question.id: question for question in voter.pool}
        questions = tuple(by_id[one] for one in order)
        if any(question.tokens is None or None in question.tokens for question in questions):
            raise PoolError(f"{voter.name}: there are responses without a count of tokens, and a price is for those")
        if any(question.structured for question in questions):
            raise PoolError(f"{voter.name} has structured answers, which a panel does not vote on")
        found.append(replace(voter, pool=Pool(voter.name, questions)))
    return tuple(found)
