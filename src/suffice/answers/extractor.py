"""The interface: an extractor finds the final answer in a response, as it was written there; and names for them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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

    def for_request(self, messages: Sequence[Mapping[str, Any]], *, asked: bool = True) -> "Extractor":
        """The one that reads responses to these messages; `asked` where somebody asked for a vote on them."""
        return self

    def ignoring(self, names: Iterable[str]) -> "Extractor":
        """The same, leaving parts of the answer with these names out; itself where answers have no parts."""
        return self

    @abstractmethod
    def extract(self, response: Response) -> str | None:
        """The answer as it was written."""

    def __call__(self, text: str) -> str | None:
        """The answer in a text, as if a response had been just that."""
        return self.extract(Response(text))


class TextExtractor(Extractor):
    """An extractor that reads what a response says, by a function from text to answer.

    >>> TextExtractor(lambda text: text.split()[-1], quick=True)("I vote for Ada")
    'Ada'
    """

    def __init__(self, read: Read, *, quick: bool = False) -> None:
        self._read = read
        self.quick = quick

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self._read, '__name__', self._read)})"

    def extract(self, response: Response) -> str | None:
        """What the function finds in a response that is complete."""
        found = self._read(response.said) if response.is_complete and response.said else None
        return None if found is None else str(found)


def _adopt(registered: Any) -> Callable[[], Extractor]:
    """What makes an extractor: a class of them, one that is made already, or a function from text to answer."""
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
