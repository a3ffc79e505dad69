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

    >>> Evidence("7", "boxed").answer
    '7'
    """

    answer: str
    kind: Kind


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

    exact: bool = False  # answers agree only where they are the same to the letter
    quick: bool = False  # reads in no time to speak of: live, others are left to a thread
    reads_tools: bool = False  # tool calls, and not the text
    follow_up: str | None = None  # asked after each response, whose `final` the reply is
    kind: Kind = "asked"  # of its evidence
    takes_cut: bool = False  # the client cuts responses itself: they are whole

    @property
    def structure(self) -> "Structure | None":
        """Reader of fields that are voted on one by one, if answers have any."""
        return None

    def comparing(self, compare: Mapping[str, str]) -> "Extractor":
        """Compare fields like this, if answers have any."""
        return self

    def for_scout(self, scout: Response) -> "Extractor | None":
        """Return the extractor of the vote after this first response; None where there is nothing to vote on."""
        return self if self.extract(scout) is not None else None

    def for_request(
        self, messages: Sequence[Mapping[str, Any]], *, asked: bool = True, most_tokens: int | None = None
    ) -> "Extractor":
        """Return the reader of responses to these messages; `asked` means that a client asked for a vote."""
        known = copy(self)
        known.takes_cut = most_tokens is not None and most_tokens <= FEW_TOKENS
        return known

    def wants_answer(self, messages: Sequence[Mapping[str, Any]]) -> bool | None:
        """Whether these messages name an answer; None where a response will show."""
        return None

    def keys(self) -> Keys:
        """Return a new question's equality of answers."""
        return Keys(self.exact)

    def ignoring(self, names: Iterable[str]) -> "Extractor":
        """Leave parts of the answer with these names out, if it has any."""
        return self

    @abstractmethod
    def extract(self, response: Response) -> str | None:
        """Return the answer as it was written."""

    def evidence(self, response: Response) -> Evidence | None:
        """The answer with what shows it."""
        found = self.extract(response)
        return None if found is None else Evidence(found, self.kind)

    def whole(self, response: Response) -> str | None:
        """Return a response's text, unless it was cut off by another than the client."""
        cut = response.finish_reason == "length" and self.takes_cut
        return response.said if response.is_complete or cut else None

    def __call__(self, text: str) -> str | None:
        """Return the answer in a text."""
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
