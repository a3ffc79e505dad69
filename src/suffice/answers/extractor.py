"""The interface: an extractor finds the final answer in a response, as it was written there; and names for them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from suffice.answers.keys import Keys
from suffice.errors import OptionError
from suffice.registry import Registry
from suffice.response import Response

if TYPE_CHECKING:
    from suffice.answers.structure import Structure

Read = Callable[[str], str | None]
"""From the text of a response to its answer.

>>> get_extractor(lambda text: "yes" if "I agree" in text else None)("On the whole I agree.")
'yes'
"""

Kind = Literal["slot", "option", "short", "conclusion", "boxed", "schema", "tool", "asked"]
"""What shows an answer.

>>> Evidence("7", "conclusion").kind
'conclusion'
"""


@dataclass(frozen=True)
class Evidence:
    """An answer as it was written, and what shows that it is one.

    >>> Evidence("7", "boxed", certain=True).answer
    '7'
    """

    answer: str
    kind: Kind
    certain: bool = False
    """Whether the request shows that there is one answer, so that a hard question is voted on to its end.

    Where it does not, two draws must agree before a vote goes on.
    """


FEW_TOKENS = 16  # a client that allows no more cuts responses itself: they are whole


class Extractor(ABC):
    """From a response to its final answer, or None where it was cut off or gave none.

    >>> class Length(Extractor):
    ...     exact = quick = True
    ...
    ...     def extract(self, response: Response) -> str | None:
    ...         return str(len(response.text.split())) if response.text else None
    >>> Length()("Just four words here")
    '4'
    """

    exact: bool = False
    """Whether two answers agree only where they are the same to the letter."""
    quick: bool = False
    """Whether it is sure to take no time to speak of; live, one that may is left to a thread."""
    reads_tools: bool = False
    """Whether tool calls are what it reads, and not the text."""
    follow_up: str | None = None
    """What the model is asked after each response, so that it gives its answer alone, as `final` of the response."""
    kind: Kind = "asked"
    """What shows its answers."""
    takes_cut: bool = False
    """Whether a response that was cut off is whole: the client cut it itself."""

    @property
    def structure(self) -> "Structure | None":
        """What reads its answers' fields, which are voted on one by one; None where they have none."""
        return None

    def comparing(self, compare: Mapping[str, str]) -> "Extractor":
        """The same, with fields compared like this; itself where answers have none."""
        return self

    def for_scout(self, scout: Response) -> "Extractor | None":
        """The one with which to vote after a first response like this; None where there is nothing to vote on."""
        return self if self.extract(scout) is not None else None

    def for_request(
        self, messages: Sequence[Mapping[str, Any]], *, asked: bool = True, most_tokens: int | None = None
    ) -> "Extractor":
        """The one that reads responses to these messages; `asked` where somebody asked for a vote on them.

        `most_tokens` is how long the request allows a response to be, if it says so.
        """
        known = copy(self)
        known.takes_cut = most_tokens is not None and most_tokens <= FEW_TOKENS
        return known

    def wants_answer(self, messages: Sequence[Mapping[str, Any]]) -> bool | None:
        """Whether these messages ask for one answer: surely, surely not, or None where a response will show."""
        return None

    def is_hopeless(self, begun: str) -> bool:
        """Whether a response that has begun like this can have no answer any more."""
        return False

    def keys(self) -> Keys:
        """What tells which answers to one question are the same; another equality is another `Keys`."""
        return Keys(self.exact)

    def ignoring(self, names: Iterable[str]) -> "Extractor":
        """The same, leaving parts of the answer with these names out; itself where answers have no parts."""
        return self

    @abstractmethod
    def extract(self, response: Response) -> str | None:
        """The answer as it was written."""

    def evidence(self, response: Response) -> Evidence | None:
        """The answer with what shows it; it is certain that there is one where somebody named it."""
        found = self.extract(response)
        return None if found is None else Evidence(found, self.kind, certain=True)

    def whole(self, response: Response) -> str | None:
        """What a response says, if it was not cut off, or only by the client."""
        cut = response.finish_reason == "length" and self.takes_cut
        return response.said if response.is_complete or cut else None

    def __call__(self, text: str) -> str | None:
        """The answer in a text, as if a response had been just that."""
        return self.extract(Response(text))


class TextExtractor(Extractor):
    """An extractor that reads what a response says, by a function from text to answer.

    >>> TextExtractor(lambda text: text.split()[-1], quick=True)("I vote for Ada")
    'Ada'
    """

    def __init__(self, read: Read, *, quick: bool = False, kind: Kind = "asked") -> None:
        self._read = read
        self.quick = quick
        self.kind = kind

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self._read, '__name__', self._read)})"

    def extract(self, response: Response) -> str | None:
        """What the function finds in a response that is complete."""
        text = self.whole(response)
        found = self._read(text) if text else None
        return None if found is None else str(found)


def _adopt(registered: Any) -> Callable[[], Extractor]:
    """Return the maker of a class, of an extractor or of a function."""
    if isinstance(registered, type) and issubclass(registered, Extractor):
        return registered
    if not callable(registered):
        raise ValueError("must be an Extractor, or a function from text to answer")
    made = get_extractor(registered)
    return lambda: made


EXTRACTORS = Registry[Extractor]("extractor", "suffice.extractors", OptionError, _adopt)

register_extractor = EXTRACTORS.register
"""Make an extractor, or a function from text to answer, usable by name, as `--answer NAME`.

>>> @register_extractor("example-last-word")
... def last_word(text: str) -> str | None:
...     return text.split()[-1] if text.split() else None
>>> get_extractor("example-last-word")("I vote for Ada")
'Ada'
"""

extractor_names = EXTRACTORS.forms
"""The names that are registered, and the forms that take a parameter.

>>> {"auto", "number", "json:PATH"} <= set(extractor_names())
True
"""


def get_extractor(answer: str | Extractor | Read) -> Extractor:
    r"""The extractor that a string describes, or that reads by a function; an extractor is returned as it is.

    >>> get_extractor("auto")(r"So the total is \boxed{\frac{1}{2}}, as 3 of 6 are red.")
    '\\frac{1}{2}'
    """
    if isinstance(answer, Extractor):
        return answer
    return TextExtractor(answer) if callable(answer) else EXTRACTORS.get(answer)


def answer_key(text: str, answer: str | Extractor | Read = "auto") -> str | None:
    r"""The key of the answer in one response's text, or None.

    >>> answer_key(r"It is \boxed{\dfrac{1}{2}}."), answer_key("I don't know.")
    ('0.5', None)
    """
    return Keys().key(get_extractor(answer)(text))
