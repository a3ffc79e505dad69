"""What a request asks for: whether it has one answer, and what such an answer would look like.

A request is read for the sentences that tell what to do: those of the first paragraph, of the last, and whatever
follows "Question:". What stands between is material (a document, a review, code), and so is what is in quotation
marks: it may say "write to us" or "yes or no" without being meant. Three things may come of it.

- *one answer*, where the request says in which form it wants it (a box, a letter, a word, one of some labels): then
  every response is expected to have one, and no scout is needed to find out;
- *none*, where it asks for a text of any kind (a poem, an e-mail, code, an explanation, a translation, a title, small
  talk): two good texts are never the same, so a vote over them could only pick one for a detail in it;
- *unknown*, anything else, questions above all: the first response shows whether there is an answer.

Opinions, advice, estimates and the steps of pipelines have the form of questions and are none (see `openness`). Of the
rest, what is not recognisably a question asks nothing, and `evidence` then takes next to nothing for an answer.

What looks like both is unknown if a form is asked for: to be wrong about "one answer" costs many samples, to be wrong
about "none" costs the vote, and to be unsure costs next to nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from suffice.answers import choices, foreign, phrases, values
from suffice.answers.openness import is_open, is_pipeline
from suffice.answers.prose import sentences, words_of

Want = Literal["any", "number", "verdict", "time", "date", "year", "name", "letter"]


@dataclass(frozen=True)
class Question:
    """What a request asks for; of one that is not known all is left open."""

    has_one_answer: bool | None = None
    """None where only a response can tell."""
    want: Want | None = "any"
    """None where nothing is asked; "any" where something is, and nothing tells what."""
    options: Mapping[str, str] | None = None
    """The labels or letters to choose from, each with the text that stands for it."""
    words: frozenset[str] = frozenset()
    """The words of the sentence that asks: what a response adds to them is its answer."""
    numbers: frozenset[str] = frozenset()
    """The numbers that are given: a result is seldom one of them."""
    scale: str | None = None
    """The top of the scale that is asked about: of "4/5" on a scale to 5, the answer is 4."""
    dates: frozenset[str] = frozenset()
    """The dates that are given."""
    names: frozenset[str] = frozenset()
    """The full names in the request: of "Priya Nair", a response may say no more than "Priya"."""
    in_money: bool = False
    """Whether it speaks of dollars, euros or pounds, and not of cents: "10 cents" is then 0.10."""
    grounded: bool = True
    """Whether figures or a document are given to answer from: all else may be an estimate."""

    @property
    def asks_nothing(self) -> bool:
        """Whether nothing in the request is known to ask for an answer."""
        return self.has_one_answer is None and self.want is None and not self.options


UNASKED = Question()
"""A request that is not known."""


def asks_for_one_answer(messages: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether a request's messages ask for one answer: surely, surely not, or None where a response must show it.

    >>> ask = lambda text: asks_for_one_answer([{"role": "user", "content": text}])
    >>> ask("Is 91 prime? Answer yes or no."), ask("Write a poem on 91."), ask("Is 91 prime?")
    (True, False, None)
    """
    return read_request(messages).has_one_answer


def read_request(messages: Sequence[Mapping[str, Any]]) -> Question:
    """What a chat request asks for, by its last user message and the system's instructions."""
    users = [message for message in messages if message.get("role") == "user"]
    asked = _text(users[-1].get("content")) if users else ""
    before = _text(users[-2].get("content")) if len(users) > 1 else ""
    told = "\n\n".join(_text(one.get("content")) for one in messages if one.get("role") in ("system", "developer"))
    question = _question(_bounded(asked), _bounded(told))
    return _following(question, asked, _question(_bounded(before), "")) if before else question


_FEWEST_WORDS = 8


def _following(question: Question, asked: str, before: Question) -> Question:
    """A short question in the light of the one before it: "and what is left?" after one for a number wants a number."""
    vague = question.want in ("any", "name") and question.has_one_answer is None and not question.options
    if not vague or len(asked.split()) > _FEWEST_WORDS or before.want != "number":
        return question
    return replace(question, want="number", numbers=question.numbers | before.numbers, grounded=True)


_LONGEST = 8000
"""Characters of a request that are read: as many of its beginning as of its end."""

_TEXT_PARTS = ("text", "input_text")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _bounded(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}\n\n{text[-half:]}"


@lru_cache(maxsize=256)  # a request is read when its course is chosen, by its scout and for its vote
def _question(asked: str, told: str) -> Question:
    instructions = _instructions(asked)
    letters, labels, told_labels = choices.letters(asked), choices.labels(_frame(asked)), choices.labels(told)
    options = letters or labels or told_labels or choices.alternatives(instructions)
    if not options and any(_SENTIMENT.search(one) and _kind(one) == "question" for one in instructions):
        options = {label: label for label in ("positive", "negative", "neutral", "mixed")}
    asking = " ".join(_asking(instructions))
    scale = phrases.SCALE.search(asking) or phrases.SCALE.search(told)
    told_form = bool(told_labels) or any(phrases.FORM.search(rule) for rule in _rules(told))
    want = _want_of(instructions) or _want_told(told) or ("any" if told_form else None)
    want = None if options else "number" if scale else want
    return Question(
        has_one_answer=_has_one_answer(asked, told, instructions, bool(letters), bool(labels), told_form),
        want="letter" if options and all(len(label) == 1 and label.isupper() for label in options) else want,
        options=options or None,
        words=frozenset(words_of(asking)),
        numbers=_numbers(" ".join(instructions)),
        dates=frozenset(values.dates_in(" ".join(instructions))),
        names=frozenset(_FULL_NAME.findall(f"{told}\n{asked}")),
        in_money=_MONEY.search(asked) is not None and not _CENTS.search(asked),
        scale=(scale[1] or scale[2]) if scale else None,
        grounded=re.search(r"\d", asked) is not None or _has_material(asked, told),
    )


_FULL_NAME = re.compile(r"\b[A-Z][^\W\d_]+(?: [A-Z][^\W\d_]+){1,3}\b")
_MONEY = re.compile(r"[$€£]|\b(?:dollars?|euros?|pounds?|usd|eur)\b", re.IGNORECASE)
_CENTS = re.compile(r"\bcents?\b|¢|\bpence\b", re.IGNORECASE)


def _numbers(text: str) -> frozenset[str]:
    """The numbers of a text, with and without commas."""
    found: list[str] = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)
    plain = [number.replace(",", "") for number in found]
    return frozenset([*found, *plain, *(f"{int(one):,}" for one in plain if one.isdigit() and 3 < len(one) < 20)])


def _has_one_answer(
    asked: str, told: str, instructions: list[str], letters: bool, labels: bool, told_form: bool
) -> bool | None:
    task = _task(instructions)
    if is_pipeline(asked, told):
        return False
    form = any(_asks_for_form(one) for one in instructions) or ("####" in asked and "answer" in asked.lower())
    writes = any(phrases.WRITES.match(one) and not _asks_for_form(one) for one in instructions)
    if not told_form and any(phrases.SYSTEM_TEXT.match(rule) for rule in _rules(told)):
        return False
    if phrases.SMALL_TALK.fullmatch(" ".join(asked.split())):
        return None if told_form else False
    if (form or letters) and not writes:
        return True
    if task == "text":  # with a form, or under a system that asks for one, it may be material
        return None if told_form or form else False
    if labels or told_form:
        return True
    return False if any(_is_open(one, asked, told) for one in _asking(instructions)) else None


def _is_open(sentence: str, asked: str, told: str) -> bool:
    """Whether a sentence asks for an opinion or an estimate, and nothing is given to draw an answer from."""
    return is_open(sentence, figures=_has_figures(asked), material=_has_material(asked, told))


def _has_figures(asked: str) -> bool:
    return len(set(re.findall(r"\d+", asked))) > 1


def _has_material(asked: str, told: str) -> bool:
    """Whether there is a document, a quotation or code beside the question."""
    marked = any(mark.search(asked) for mark in (_FENCE, _QUOTED, _GIVEN)) or _CONTEXT.match(asked)
    return bool(marked) or len(asked) > 400 or len(told) > 200


def _asks_for_form(sentence: str) -> bool:
    """Whether a sentence says in which form it wants the answer; what is to be translated says nothing."""
    told = sentence.partition(": ")[0] if phrases.WRITES.match(sentence) else sentence
    return phrases.FORM.search(told) is not None


# --- the sentences that tell what to do

_FENCE = re.compile(r"```.*?(?:```|\Z)|<(\w{2,20})>.*?</\1>", re.DOTALL)
_QUOTED = re.compile(r'"[^"\n]{12,}"|“[^”\n]{12,}”|«[^»\n]{8,}»|(?<!\w)\'[^\'\n]{12,}\'(?!\w)')
_LABELLED = re.compile(
    r"(?:^|\n)[ \t>*#]*(?:user |the )?"
    r"(?:question|query|task|instructions?|problem|frage|aufgabe|pregunta|tarea|domanda)\s*[*]*:[*]*[ \t]*",
    re.IGNORECASE,
)
_MATERIAL = (
    r"[>*# \t]*(?:the |input |user |customer )?(?:context|background|documents?|passage|article|text|excerpt|source|"
    r"e-?mail|review|contract|policy|message|tweet|ticket|input|sentence|comment|statement|customer|transcript|"
    r"kontext|texte?|texto)"
)
_CONTEXT = re.compile(rf"{_MATERIAL}(?! (?:my|this|the|these)\b)\b[^.?!\n]{{0,40}}[:\n]", re.IGNORECASE)
_GIVEN = re.compile(rf"^{_MATERIAL}\s?\d*[*]*:[*]*[ \t]*\S.*$", re.IGNORECASE | re.MULTILINE)
_CONDITION = re.compile(r"\W*(?:if|when|whenever|for|in case|unless)\b", re.IGNORECASE)
_MOST_SENTENCES = 8


def _bare(text: str) -> str:
    """Without fenced code, tagged documents, long quotations and marks of emphasis."""
    text = _QUOTED.sub('""', _FENCE.sub("\n\n", text))
    return re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}", "", text)


_LONGEST_SENTENCE = 600


def _sentences(text: str) -> list[str]:
    """The sentences of a text, the longest without their middle: what asks stands at either end."""
    half = _LONGEST_SENTENCE // 2
    return [one if len(one) <= 2 * half else f"{one[:half]} … {one[-half:]}" for one in sentences(text)]


def _rules(told: str) -> list[str]:
    """The sentences of the system that hold for whatever the user says."""
    return [sentence for sentence in _sentences(_bare(told)) if not _CONDITION.match(sentence)]


def _instructions(asked: str) -> list[str]:
    """The sentences of a user's message that tell what to do, rather than what to do it with."""
    text = _GIVEN.sub("", _bare(asked)).strip()
    given = _GIVEN.findall(_bare(asked))
    if given and given[-1].rstrip().endswith("?") and not any(_kind(one) for one in _sentences(text)):
        text = given[-1].partition(":")[2].strip()  # the one who speaks last asks
    labels = list(_LABELLED.finditer(text))
    if labels:
        head = text[: labels[0].start()]
        sorts = any(phrases.CLASSIFIES.match(one) for one in _sentences(head))  # what is labelled is then material
        text = head if sorts else text[labels[-1].end() :]
    paragraphs = [one for one in re.split(r"\n\s*\n", text) if one.strip()]
    if not paragraphs:
        return []
    first = _sentences(paragraphs[0])
    if len(paragraphs) == 1:
        first = _before_material(first)
        return first if len(first) <= 2 * _MOST_SENTENCES else first[:_MOST_SENTENCES] + first[-_MOST_SENTENCES:]
    first = [] if _CONTEXT.match(paragraphs[0]) else _before_material(first[:_MOST_SENTENCES])
    last = [] if first and _CONTEXT.match(paragraphs[-1]) else _sentences(paragraphs[-1])[-_MOST_SENTENCES:]
    if first and _task(first) is not None:  # what comes after is what it speaks of, but may still say in which form
        last = [sentence for sentence in last if phrases.FORM.search(sentence) or _ASKED_LAST.search(sentence)]
    return first + last


_ASKED_LAST = re.compile(r"^(?:what|which|who|how (?:many|much)|is|are|does|do|can)\b[^.]*\?$", re.IGNORECASE)


def _frame(asked: str) -> str:
    """The text around the material of a long message, in which labels may be listed."""
    if _CONTEXT.match(asked):
        return re.split(r"\n\s*\n", asked.rstrip())[-1]
    return asked if len(asked) <= 1600 else f"{asked[:800]}\n\n{asked[-800:]}"


def _before_material(said: list[str]) -> list[str]:
    """The sentences up to one that ends in a colon and says what to do with the rest."""
    for place, sentence in enumerate(said):
        if sentence.endswith(":") and _kind(sentence) is not None:
            return said[: place + 1] + [one for one in said[place + 1 :] if phrases.FORM.search(one)]
    return said


# --- what kind of task it is


def _kind(sentence: str) -> Literal["text", "explanation", "question"] | None:
    """What a sentence asks for, if anything."""
    if phrases.EXPLAINS.match(sentence):
        return "explanation"
    if foreign.wants_text(sentence):
        return "text"
    if phrases.WRITES.match(sentence) or phrases.WISHES.search(sentence):
        return "text"
    if phrases.LOOKS_UP.match(sentence):
        return "question"
    if phrases.DEFINES.fullmatch(sentence) or phrases.WHO.fullmatch(sentence):
        return "text"
    measured = phrases.HOW_MANY.search(sentence) or phrases.NUMBERS.search(sentence)
    if phrases.OPEN.match(sentence) and (not measured or phrases.ADVICE.search(sentence)):
        return "text"
    asks = _want(sentence) or sentence.endswith("?") or choices.ALTERNATIVES.search(sentence)
    return "question" if asks else None


def _task(said: list[str]) -> Literal["text", "question"] | None:
    """What the sentences ask for together: to explain an answer is no text of its own, to explain all else is."""
    kinds = [_kind(sentence) for sentence in said]
    if "text" in kinds or (len(said) == 1 and kinds != ["question"] and phrases.TITLE.match(said[0])):
        return "text"
    if "question" in kinds:
        return "question"
    return "text" if "explanation" in kinds else None


def _asking(said: list[str]) -> list[str]:
    return [sentence for sentence in said if _kind(sentence) == "question"] or said


_SENTIMENT = re.compile(r"\bsentiment\b", re.IGNORECASE)


# --- what an answer would look like


_NUMBERED = re.compile(
    r"\b(?:invoice|order|phone|telephone|account|customer|tracking|serial|reference|case|ticket|flight|model|part|"
    r"booking|"
    r"policy|registration) (?:number|no\b|id\b|code)",
    re.IGNORECASE,
)
"""What is called a number, and is a name: letters and hyphens belong to it."""


def _want(sentence: str) -> Want | None:
    """What an answer to a sentence would look like."""
    direct = phrases.DIRECT.match(sentence)
    sentence = sentence[direct.end() :] if direct else sentence
    if re.search(r"\bcomplexity\b", sentence, re.IGNORECASE):
        return "name"
    if foreign.is_other_script(sentence):
        return foreign.want(sentence)
    if _NUMBERED.search(sentence):
        return "name"
    if phrases.TIMES.search(sentence):
        return "time"
    if phrases.YEARS.search(sentence):
        return "year"
    if any(pattern.search(sentence) for pattern in (phrases.HOW_MANY, phrases.NUMBERS, phrases.SCALE)):
        return "number"
    if phrases.AUXILIARY.search(sentence) and not re.search(r"\b(?:or(?! not)|oder)\b", sentence):
        return "verdict"
    if phrases.DATES.search(sentence):
        return "date"
    if len(sentence.split()) <= 10 and (looked_up := phrases.LOOKS_UP.match(sentence)):
        return "number" if looked_up["number"] else "name"
    names = phrases.NAMES.match(sentence) or (sentence.endswith("?") and phrases.NAMES.search(sentence))
    return "name" if names else None


_SORTS = re.compile(r"\b(?:classifier|grader|judge|moderator|detector|router|tagger|labell?er|scorer)\b", re.IGNORECASE)


def _want_told(told: str) -> Want | None:
    """What the system wants of whatever the user says, where that asks for nothing itself."""
    rules = [rule for rule in _rules(told) if not rule.endswith("?")]
    wants = [_want(rule) for rule in rules if phrases.CLASSIFIES.match(rule)]
    return next((want for want in wants if want), "any" if any(map(_SORTS.search, rules)) else None)


def _want_of(said: list[str]) -> Want | None:
    asked = [sentence for sentence in said if _kind(sentence) == "question"]
    wants = [_want(sentence) for sentence in asked]
    unsure: Want | None = "any" if asked and any(foreign.is_english(sentence) for sentence in asked) else None
    want = next((want for want in reversed(wants) if want), unsure)
    clock = want == "date" and any(values.time_in(sentence) for sentence in said)
    return "time" if clock else want
