"""What a request shows of its answer: the place for it, the options, or numbers to calculate with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from suffice.answers.forms import Slot, is_form, labels_in, lettered, slots_in
from suffice.answers.prose import STAMP, bounded, in_digits, numbers, sentences, without_asides, without_fences
from suffice.answers.words import ANSWER, BRIEF, HOW_MANY, NO, ONLY, YES, folded

Messages = Sequence[Mapping[str, Any]]

MAX_CHARACTERS = 8000  # of a message: half at its beginning, half at its end
MAX_SUM_CHARACTERS = 600  # beyond, a question with numbers in it is about a document
MAX_LAST_CHARACTERS = 120  # of a sentence at the end of the material that still instructs
SERIES_SHARE = 0.4  # of words of an order that are numbers to calculate with
MAX_SENTENCES = 6  # of the first and of the last paragraph: what lies between is material
MAX_LABEL_CHARACTERS = 30
MAX_BRIEF_WORDS = 20  # of a sentence that says what alone to answer

_EXPRESSION = re.compile(
    r"(?<![\w./-])\(?-?\d[\d.,]*\)?[a-z]?\s?(?:[+*×÷^−]|(?<=\s)-|(?<=\s)x(?=\s)|/(?!\d*/))\s?\(*-?\d[\d.,]*"
    r"|\d+ ?% (?:of|von|de|di)\b|=\s?[?？]"
)
_SCALE = re.compile(
    r"(?<![\d.,:/$€£-])(?:[(（\[]\s?)?\b(?P<least>[01])(?:\s?[-–—~〜～/]\s?|\s\w{1,3}\s|から|到|至|에서|부터\s?)"
    r"(?P<most>[3-9]|10|20|100)(?![\d.,]*\d)(?P<after>\s?[()（）\].,;:!?。，、：]|\s*$|점|分|点)?",
    re.MULTILINE,
)
_FIELDS = re.compile(r"\{[^{}]*\"[^\"\n{}]{1,40}\"\s*:[^{}]*\}")
_VALUE = re.compile(r"\"[^\"\n]{1,40}\"\s*:\s*(\"[^\"\n]*\"|[^\s,{}\[\]\"][^,\n{}]*|\[[^\]]*\])")
_CLOSED = re.compile(
    r"-?\d[\d.]*|true|false|null|[\"<]?(?:bool|boolean|int|integer|number|float|-?\d+ ?(?:-|–|to) ?\d+)[\">]?.{0,10}"
    r"|.*\w\"? ?[|/] ?\"?\w.*",
    re.IGNORECASE,
)
_OPEN_LABEL = re.compile(r"(?:^|\n)[*# \t]*([^\W\d_][\w '/-]{0,30})(?::|：|->|=>|→|=)[* \t]*$")
_THE_ANSWER = re.compile(
    r" (?:the|het|die|der|la|a|el) (?:answer|solution|antwoord|antwort|lösung|réponse|respuesta|risposta|resposta) "
)
_ASIDE = re.compile(r"[(（][^()（）]{25,}[)）]")
_QUESTION = re.compile(r"[?？؟][*_\"'”’)\] ]*$", re.MULTILINE)

_ROLE = re.compile(r"(?:you are|you're) (?:an? )?[\w ,-]{0,40}assistant\W*", re.IGNORECASE)
"""A system prompt that gives no task."""


@dataclass(frozen=True)
class Request:
    """What a request shows of its answer."""

    slots: tuple[Slot, ...] = ()
    letters: Mapping[str, str] = field(default_factory=dict)  # with their texts
    labels: Sequence[str] = ()
    verdict: bool = False  # the labels are yes and no
    boxed: bool = False
    scale: tuple[int, int] | None = None
    asks: bool = False  # a question, or about some material
    ordered: bool = False  # the labels or the scale are in a sentence that says what to answer
    brief: bool = False  # the answer alone is asked for, or follows examples
    json: bool = False  # asked for, with a field that is called what answers are, or that is closed
    closed_fields: bool = False  # and no field of it is a text
    object: bool = False  # with several fields, of which some may be texts
    form: bool = False  # it has several places to fill in, or shows code to be edited
    how_many: bool = False  # a number is asked for
    sum: bool = False  # a question over numbers
    worded: bool = False  # one whose answer may be a word, as of a weekday
    text: str = ""  # the system prompt and the question
    numbers: frozenset[str] = frozenset()

    @cached_property
    def words(self) -> str:
        """All of it, folded."""
        return folded(self.text)

    @property
    def named(self) -> str:
        """What shows the place or the options of the answer; empty if nothing does."""
        # A bare order with a label, and nothing that it is about, may want something made up.
        slot = any(one.close or self.asks for one in self.slots)
        shown = {"fields": self.closed_fields, "box": self.boxed, "slot": slot}
        options = self.letters or (self.ordered and self.labels)
        return self._first({**shown, "options": options, "scale": self.ordered and self.scale})

    @property
    def hinted(self) -> str:
        """What says in words that there is an answer; a first response has to confirm it."""
        return self._first({"slot": self.slots, "options": self.labels, "scale": self.scale, "brief": self.brief})

    def _first(self, shown: Mapping[str, Any]) -> str:
        return "" if self.form or self.object else next((name for name, has in shown.items() if has), "")


def read_request(messages: Messages) -> Request:
    """Read the system prompt, the last user message, and how short the replies before it were."""
    return _read(*texts_of(messages), _has_short_replies(messages))


def _has_short_replies(messages: Messages) -> bool:
    """Whether replies before the last request are labels, as examples are."""
    said = [
        _text(one.get("content")) for one in messages if isinstance(one, Mapping) and one.get("role") == "assistant"
    ]
    return len(said) > 1 and all(
        0 < len(one) <= MAX_LABEL_CHARACTERS and not one.endswith((".", "!", "?")) for one in said
    )


def texts_of(messages: Messages) -> tuple[str, str]:
    """Return the system prompt, empty where it gives no task, and the last user message."""
    said = [(str(one.get("role")), _text(one.get("content"))) for one in messages if isinstance(one, Mapping)]
    told = "\n".join(text for role, text in said if role in ("system", "developer")).strip()
    asked = next((text for role, text in reversed(said) if role == "user"), "")
    return "" if _ROLE.fullmatch(told) else bounded(told, MAX_CHARACTERS), bounded(asked, MAX_CHARACTERS)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "input_text")]
    return "\n\n".join(text for text in texts if isinstance(text, str))


@lru_cache(maxsize=256)  # a request is read when its route is chosen, and for its vote
def _read(told: str, asked: str, follows_examples: bool) -> Request:
    parts = [one for one in asked.split("\n\n") if one.strip()] or [""]
    ends = "\n\n".join(parts if len(parts) < 3 else [parts[0], parts[-1]])
    system = [one[:400] for one in sentences(without_fences(told))[:40]]
    is_task = bool(told)
    # Beside a task the user's text is material, but for its end.
    own = [one for one in sentences(asked)[-2:] if len(one) < MAX_LAST_CHARACTERS] if is_task else _instructions(asked)
    frame = [*system, *own]
    both = told if is_task else f"{told}\n{asked}"
    slots = slots_in(_FIELDS.sub(" JSON. ", told if is_task else f"{told}\n{ends}"))
    if is_task and not slots:
        slots = [one for one in slots_in(ends) if one.is_answer or one.close]
    letters = lettered(asked, at_end=is_task)
    orders = [one for one in frame if ANSWER.occur_in(folded(one)) or ONLY.occur_in(folded(one))]
    scale = _scale(frame)
    listed = [] if letters or scale else labels_in(orders)
    labels = listed or ([] if letters or scale else labels_in(frame))
    objects = [_VALUE.findall(one) for one in _FIELDS.findall(both)]
    is_json = "json" in both.casefold()
    values = [value.strip() for object_ in objects for value in object_]
    closed = [bool(_CLOSED.fullmatch(value)) for value in values]
    is_label = len(values) == 1 and len(values[0].split()) <= 2  # the only field
    how_many = any(HOW_MANY.occur_in(folded(one)) for one in _instructions(asked))
    counted = (how_many or _QUESTION.search("\n".join(_instructions(asked)))) and len(numbers(in_digits(asked))) > 1
    own_sentences = sentences(in_digits(without_fences(asked)))
    is_series = any(len(numbers(one)) > max(2, SERIES_SHARE * len(one.split())) for one in own_sentences)
    is_expression = is_series or any(map(_EXPRESSION.search, own_sentences))
    return Request(
        slots=tuple(slots[:1]),
        letters=letters,
        labels=labels,
        verdict=bool(labels) and all(any(table.are(folded(one)) for one in labels) for table in (YES, NO)),
        boxed="\\boxed" in f"{told}\n{asked}",
        scale=scale,
        asks=any(one in f"{told}\n{asked}" for one in ("?", "？", "؟")) or "\n\n" in asked.strip(),
        ordered=bool(listed or _scale([one for one in frame if ONLY.occur_in(folded(one))])),
        brief=follows_examples or any(map(_is_brief, frame)) or _has_open_label(asked),
        json=is_json and (any(closed) or any(" json " in one and ANSWER.occur_in(one) for one in map(folded, frame))),
        closed_fields=is_json and bool(closed) and all(closed),
        object=is_json and not is_label and not all(closed or [False]),
        form=len(slots) > 1
        or is_form(told, asked)
        or any(_keeps_answer_back(folded(one)) for one in [*frame, *sentences(asked)[-2:]]),
        how_many=how_many,
        text=f"{told}\n{asked}",
        worded=bool(counted) and not any(ONLY.occur_in(folded(one)) for one in frame),
        sum=len(asked) < MAX_SUM_CHARACTERS and "```" not in asked and (counted or (not is_task and is_expression)),
        numbers=frozenset([*numbers(asked), *STAMP.findall(asked)]),
    )


def _instructions(asked: str) -> list[str]:
    """Return the sentences of the first and of the last paragraph."""
    parts = [one for one in without_fences(asked).split("\n\n") if one.strip()] or [""]
    first, last = sentences(parts[0]), sentences(parts[-1]) if len(parts) > 1 else []
    if len(first) > 2 * MAX_SENTENCES:
        first = first[:MAX_SENTENCES] + first[-MAX_SENTENCES:]
    told = [one[:400] for one in [*first, *last[-MAX_SENTENCES:]]]
    is_material = len(told) > 1 and told[-2].endswith((":", "："))  # what a colon announces, alone
    return told[:-1] if is_material else told


def _is_brief(sentence: str) -> bool:
    """Whether a sentence asks for a word, a number or the answer and nothing besides."""
    said = folded(sentence)
    fits = len(said.split()) <= MAX_BRIEF_WORDS and ONLY.occur_in(said)
    before = (said.partition(entry)[0].split()[-1:] for entry in BRIEF.entries if entry in said)
    return fits and not all(any(map(NO.are, one)) for one in before)


def _keeps_answer_back(said: str) -> bool:
    """Whether the answer is not to be told, as by a tutor."""
    found = _THE_ANSWER.search(said)
    before = said[: found.start()].split()[-4:] if found else []
    return any(map(NO.are, before)) and not said.startswith(" if ")


def _scale(frame: Sequence[str]) -> tuple[int, int] | None:
    for sentence in frame:
        told = _ASIDE.sub("", in_digits(sentence))
        for shown in (told, without_asides(told)):
            for found in () if told.count(",") > 2 else _SCALE.finditer(shown):
                if found["after"] or " scale " in folded(sentence):
                    return int(found["least"]), int(found["most"])
    return None


def _has_open_label(asked: str) -> bool:
    """Whether it ends with a label left open, after examples of it."""
    label = _OPEN_LABEL.search(asked.rstrip())
    filled = rf"\n[*# \t]*{re.escape(label[1])}\s*(?::|：|->|=>|→|=)[ \t*]*[^\s*]" if label else ""
    return bool(label) and len(re.findall(filled, f"\n{asked}")) > 1
