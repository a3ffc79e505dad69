"""Evidence of an answer in one response: clear, weak or none. The one place that tells them apart.

A vote is worth its samples only where two responses can agree. Clear evidence is what a person would take for *the*
answer without having asked for a form. It starts a vote; weak evidence never does, and counts only where the caller
asked for a vote: the last number of some prose may be a date, a telephone number or a step in a list.

Clear are, in the order in which they are looked for:

- *boxed*: nobody draws a box around anything else;
- *stated*: "the answer is", "Answer:", "####": the text says itself which part is its answer. A statement is clear
  only if what it says is short, as "the answer depends on …" says nothing to agree on;
- *option*: one of the labels or letters between which the request leaves the choice, and no other beside it;
- *whole*: a response of a few words (a name, a label, a date, an amount) has no room for anything but its answer.
  Small talk, questions back and code are as short, and are none;
- *verdict*: a "yes" or "no" that opens the text and is followed by its grounds. "Yes, I'd be happy to" has none;
- *lead*: an amount that opens the text, with how it came about after it: "72: 48 plus 24";
- *conclusion*: the result at the end of a short calculation: an equation, a number in bold, the one number of a
  sentence that begins with "so". Long prose with numbers in it has no such end;
- *told*: where the request asks for a number, a name, a date or a time, what the first or the last sentence adds to
  the words of the question: in "The capital of France is Paris." it is Paris.

The less a request is known to be a question, the more is asked of a response. Where nothing in it asks, only a box and
"final answer" are clear: whatever else the text says may be a part of what it was told to make. Where a number is
wanted that nothing given leads to, a range or "it depends" makes it an estimate. In a text that is laid out, with
headings and lists, only its conclusion counts, or a first sentence that says the question again.

None have refusals, questions back, lists, tables, code and whole JSON objects (kind "structure": they are voted on
field by field). Where the request asks for a text (a poem, a title, a translation) nothing is clear, whatever the
response looks like: a title is as short as a label, and only the request tells them apart.

Amounts lose their unit ("72 clips" and "72" agree), dates and times get one spelling, yes and no one language, and
labels the spelling of the request, so that responses which say the same agree.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from suffice.answers import prose, values
from suffice.answers.options import option, option_at_start
from suffice.answers.prose import unmarked
from suffice.answers.requests import UNASKED, Question
from suffice.answers.results import conclusion, lead
from suffice.answers.spelling import as_option, spelled
from suffice.answers.stated import boxed, said_formula, said_letter, said_number
from suffice.answers.statements import finally_stated, stated
from suffice.answers.told import told
from suffice.answers.verdicts import AGREES, verdict
from suffice.answers.whole import bare_value, whole

Kind = Literal[
    "boxed", "stated", "option", "whole", "verdict", "lead", "conclusion", "told", "structure", "weak", "nothing"
]


@dataclass(frozen=True)
class Evidence:
    """The answer that a response seems to give, and how it shows; only a clear one is reason for a vote.

    >>> evidence("Yes, under section 8.2."), evidence("Which of the two do you mean?").kind
    (Evidence(answer='yes', clear=True, kind='verdict'), 'nothing')
    """

    answer: str | None
    clear: bool
    kind: Kind


_LONGEST = 20_000


def clear_answer(text: str, question: Question = UNASKED) -> str | None:
    """The answer that a response clearly gives, as it was written, or None.

    >>> clear_answer("She sold 48 + 24 = 72 clips."), clear_answer("Yes, under section 8.2."), clear_answer("Any time!")
    ('72', 'yes', None)
    """
    found = evidence(text, question)
    return found.answer if found.clear else None


def evidence(text: str, question: Question = UNASKED) -> Evidence:
    r"""What one response gives as its answer, to a request if that is known.

    >>> evidence(r"So it is \boxed{7}."), evidence("It took us 3 days. The road was long, and so was the film.")
    (Evidence(answer='7', clear=True, kind='boxed'), Evidence(answer='3', clear=False, kind='weak'))
    """
    if (inside := boxed(text)) is not None:
        return Evidence(_in_box(inside, question), question.has_one_answer is not False, "boxed")
    text = _bounded(prose.unfenced(prose.without_pictures(text)))
    if is_structure(text):
        return Evidence(None, False, "structure")
    if question.has_one_answer is not False:
        agrees = question.want == "verdict" and AGREES.match(text)  # "Absolutely." is no courtesy there
        body = text if agrees else prose.without_courtesies(text)
        body = prose.without_code(body) if question.want in ("number", "name", "verdict") else body
        body = values.in_decimals(body) if question.want == "number" else body
        body = values.in_whole_money(body) if question.in_money else body
        for kind, read in _SURE if question.asks_nothing or _is_estimate(body, question) else _READERS:
            answer = read(body, question)
            if answer is not None:
                return Evidence(spelled(answer, question), True, kind) if answer else Evidence(None, False, "nothing")
    weak = _weak(text)
    return Evidence(weak, False, "weak" if weak else "nothing")


def _bounded(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}\n\n{text[-half:]}"


def is_structure(text: str) -> bool:
    """Whether the whole of a response is a JSON object, or a list of such, in a fence or not."""
    whole = re.sub(r"^[^\n{\[]{1,100}:\s*\n+(?=```)", "", text.strip())
    whole = re.sub(r"^```(?:json)?\s*|\s*```$", "", whole)
    if whole[:1] not in ("{", "[") or whole[-1:] not in ("}", "]"):
        return False
    try:
        read = json.loads(whole)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) or any(isinstance(one, dict | list) for one in read)


_BOXED_CHOICE = re.compile(r"(?:\\(?:text|math)\w*\s*\{\s*)?(?:\(([A-J])\)\s*[^\s}]|([A-J])[.:]\s+\S)")


_BOXED_UNIT = re.compile(r"\\?\$?(-?[\d.,]*\d)\s*\\(?:text|mathrm)\s*\{\s*[a-z ]{2,20}\}")


def _in_box(inside: str, question: Question) -> str:
    unit = _BOXED_UNIT.fullmatch(inside) if question.want == "number" else None
    if unit:
        return unit[1]
    labelled = _BOXED_CHOICE.match(inside)  # "(B) 12" is B
    if labelled:
        return labelled[1] or labelled[2]
    left, equals, right = inside.rpartition("=")
    if equals and right.strip() and re.fullmatch(r"(?:\\[dt]?frac|[-\d\s{}+*/().,^=])+", left):
        return right.strip()  # a sum with its result
    return (as_option(unmarked(inside), question) if len(inside) < 200 else None) or inside


def _weak(text: str) -> str | None:
    """A letter or the last number, wherever it stands."""
    if prose.is_refusal(text):
        return None
    found = [one for one in (said_letter(text), said_formula(text), said_number(text)) if one]
    return max(found, key=lambda one: one[:2])[2] if found else None


_LETTERED = re.compile(r"\s*\(?[A-J][).:]\s+\S")


def _nothing(text: str, question: Question) -> str | None:
    """Empty for refusals, small talk and questions back: what follows is not looked at."""
    if option_at_start(text, question) or (question.want == "letter" and _LETTERED.match(text)):
        return None
    if not text or (prose.says_nothing(unmarked(text)) and not as_option(text, question)):
        return ""
    if prose.asks_back(text) and not verdict(text, question):
        return ""
    return None


def _is_estimate(text: str, question: Question) -> bool:
    """Whether a number is asked for that nothing given leads to, and the text gives a range or says that it depends."""
    return (
        question.has_one_answer is None and question.want == "number" and not question.grounded and prose.hedges(text)
    )


_SURE: tuple[tuple[Kind, Callable[[str, Question], str | None]], ...] = (("stated", finally_stated),)
_READERS: tuple[tuple[Kind, Callable[[str, Question], str | None]], ...] = (
    ("stated", stated),
    ("nothing", _nothing),
    ("option", option),
    ("verdict", verdict),
    ("whole", bare_value),
    ("lead", lead),
    ("conclusion", conclusion),
    ("told", told),
    ("whole", whole),
)
