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

None have refusals, questions back, lists, tables, code and whole JSON objects (kind "structure": they are voted on
field by field). Where the request asks for a text (a poem, a title, a translation) nothing is clear, whatever the
response looks like: a title is as short as a label, and only the request tells them apart.

Amounts lose their unit ("72 clips" and "72" agree), dates and times get one spelling, yes and no one language, and
labels the spelling of the request, so that responses which say the same agree.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from suffice.answers import prose, values
from suffice.answers.prose import sentences, unmarked, words_of
from suffice.answers.requests import UNASKED, Question
from suffice.answers.stated import NUMBER, boxed, plain_number, said_formula, said_letter, said_number

Kind = Literal[
    "boxed", "stated", "option", "whole", "verdict", "lead", "conclusion", "told", "structure", "weak", "nothing"
]


@dataclass(frozen=True)
class Evidence:
    """The answer that a response seems to give, and how it shows; only a clear one is reason for a vote."""

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
        agrees = question.want == "verdict" and _AGREES.match(text)  # "Absolutely." is no courtesy there
        body = text if agrees else prose.without_courtesies(text)
        for kind, read in _READERS:
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
    whole = re.sub(r"^```(?:json)?\s*|\s*```$", "", text.strip())
    if whole[:1] not in ("{", "[") or whole[-1:] not in ("}", "]"):
        return False
    try:
        read = json.loads(whole)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) or any(isinstance(one, dict | list) for one in read)


_BOXED_CHOICE = re.compile(r"(?:\\(?:text|math)\w*\s*\{\s*)?(?:\(([A-J])\)\s*[^\s}]|([A-J])[.:]\s+\S)")


def _in_box(inside: str, question: Question) -> str:
    labelled = _BOXED_CHOICE.match(inside)  # "(B) 12" is B
    if labelled:
        return labelled[1] or labelled[2]
    left, equals, right = inside.rpartition("=")
    if equals and right.strip() and re.fullmatch(r"(?:\\[dt]?frac|[-\d\s{}+*/().,^=])+", left):
        return right.strip()  # a sum with its result
    return (_as_option(unmarked(inside), question) if len(inside) < 200 else None) or inside


def _weak(text: str) -> str | None:
    """A letter or the last number, wherever it stands."""
    if prose.is_refusal(text):
        return None
    found = [one for one in (said_letter(text), said_formula(text), said_number(text)) if one]
    return max(found, key=lambda one: one[:2])[2] if found else None


# --- spelling

_ARTICLE = re.compile(r"(?:the|an?|le|la|les|el|der|die|das)\s+(?=\S)", re.IGNORECASE)
_YES = re.compile(r"(?:yes|yeah|yep|ja|oui|sí|sim|sì|да|はい|是的?)", re.IGNORECASE)
_NO = re.compile(r"(?:no|nope|nein|non|não|нет|いいえ|不是?|否)", re.IGNORECASE)


def spelled(answer: str, question: Question = UNASKED) -> str:
    """An answer in the one spelling that it shares with others that say the same."""
    bare = _trimmed(answer)
    if question.options and (option := _as_option(bare, question)):
        return option
    if _YES.fullmatch(bare):
        return "yes"
    if _NO.fullmatch(bare):
        return "no"
    for spell in (_as_date, _as_time):
        if spelt := spell(bare, question):
            return spelt
    if number := values.amount(bare, question.scale):
        return number
    bare = _ARTICLE.sub("", bare, count=1) if _ARTICLE.match(bare) else bare
    kept = [word for word in bare.split() if next(words_of(word), "") not in question.words]  # of "Nile River", Nile
    return " ".join(kept) if question.want == "name" and kept and bare.replace(" ", "").isalpha() else bare


def _trimmed(answer: str) -> str:
    bare = unmarked(answer).strip(" \t\n\"“”'‘’`*_")
    bare = re.sub(r"[\s.!,;:。]+$", "", bare) if not re.search(r"\b(?:[A-Z]\.|[ap]\.m\.)$", bare) else bare
    return bare.strip(" \"“”'‘’`*_")


def _as_date(text: str, question: Question) -> str | None:
    date = values.date_in(text)
    return date if date and (len(text) <= 30 or question.want == "date") else None


def _as_time(text: str, question: Question) -> str | None:
    return (
        values.time_in(text)
        if len(text) <= 20 and re.match(r"\D{0,8}\d{1,2}[:.h ]?\d{0,2}\s*(?:[ap]\.?m\.?)?", text)
        else None
    )


# --- stated

_LABEL = (
    r"(?:(?:final|correct|right|best|short|overall|my|the|numerical|estimated)\s+)*"
    r"(?:answer|result|solution|verdict|conclusion|total|output|classification|label|category|prediction|decision|"
    r"antwort|ergebnis|lösung|réponse|résultat|respuesta|resultado|risposta|risultato|resposta|答案|答え|回答)"
)
_SAYS = re.compile(
    r"\banswer\b(?! [A-J]\b)[^.\n:=?]{0,60}?(?:\bis\b|\bwas\b|\b(?:would|must|should) be\b|:|=)|####|"
    rf"(?:^|\n)[ \t>*_#-]*{_LABEL}[*_]*\s*[:=：][*_]*|"
    r"\b(?:die antwort|das ergebnis)\b[^.\n:?]{0,40}?\b(?:ist|lautet|beträgt)\b:?|\bla (?:réponse|respuesta|"
    r"risposta|resposta)\b"
    r"[^.\n:?]{0,40}?\b(?:est|es|è|é)\b:?|答案是?[:：]?",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",|;|\s\(|\.(?=\s|$)|\s[–—-]\s|\b(?:because|since|where|as|which|with|weil|da|car|porque)\b|\n")
_VAGUE = re.compile(
    r"\W*(?:not\b|(?:it |that )?depends|unclear|unknown|below|above|as follows|in the|the following|"
    r"to\b|that\b|that it)",
    re.I,
)


def _stated(text: str, question: Question) -> str | None:
    """What the text says is its answer, by its last such statement."""
    found = [one for one in (said_letter(text), said_formula(text), said_number(text)) if one and one[0]]
    best = max(found, key=lambda one: one[:2]) if found else None
    says = list(_SAYS.finditer(text))[-20:]
    last_line = text.rstrip().rfind("\n") - 1
    says = [
        say
        for say in says
        if re.search(r"answer|antwort|r[ée]p|resp|risp|#|答", say[0], re.IGNORECASE) or say.start() >= last_line
    ]
    answers = [
        _said(text[say.end() : say.end() + 300], question) for say in says if say[0].endswith((":", ":*", ":**"))
    ]
    if len({answer for answer in answers if answer}) > 2:  # a list of questions and answers
        return ""
    for say in reversed(says):
        if best and best[1] > say.start() + 10:
            break
        said = _said(text[say.end() : say.end() + 300], question)
        if said:
            return said
    return best[2] if best else None


def _said(rest: str, question: Question) -> str | None:
    """The short answer at the beginning of what follows a statement."""
    rest = unmarked(rest.lstrip(" \t*_:\n>")).strip()
    rest = rest.partition("\n")[0]
    if not rest or _VAGUE.match(rest):
        return None
    if option := _option_at_start(rest, question):
        return option
    letter = re.match(r"\(?([A-J])\)?(?:[.:)]|\s*$|\s+(?:because|since|as)\b)", rest)
    if letter and not re.match(r"[AI] [a-z]", rest):
        return letter[1]
    aside = _ASIDE.search(rest, 1)
    said = (rest[: aside.start()] if aside else rest).strip()
    verdict = re.match(r"\w+", said)
    if verdict and (_YES.fullmatch(verdict[0]) or _NO.fullmatch(verdict[0])) and len(said.split()) < 8:
        return verdict[0]
    if re.search(r"\d", rest[:60]) and (re.search(r"\d", said) or "=" in rest):
        equals = said.rpartition("=")[2].strip()
        return values.amount(equals, question.scale) or values.date_in(said) or values.time_in(said)
    spoken = values.amount(said)
    if spoken:
        return spoken
    if _PERSONAL.search(said) or re.search(r"[\\$={}]|ly$", said):
        return None
    return said if len(said.split()) <= (4 if said[0].isupper() else 3) else None


# --- no answer at all

_QUESTION_BACK = re.compile(r"\?[\"”')*_\s]*$")


def _nothing(text: str, question: Question) -> str | None:
    """Empty for refusals, small talk and questions back: what follows is not looked at."""
    if not text or (prose.says_nothing(unmarked(text)) and not _as_option(text, question)):
        return ""
    if _QUESTION_BACK.search(text) and not _verdict(text, question):
        return ""
    return None


# --- options


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.casefold()).strip()


def _as_option(text: str, question: Question) -> str | None:
    """The option that a text is, by its label or by what stands for it."""
    folded = _folded(_trimmed(text))
    if not folded or not question.options:
        return None
    for label, meaning in question.options.items():
        name, meant = _folded(label), _folded(meaning)
        if folded in (name, meant, f"({name})", f"option {name}"):
            return label
        if meant != name and re.fullmatch(rf"(?:option )?\(?{re.escape(name)}[).:]*\s*{re.escape(meant)}", folded):
            return label
    return None


def _option_at_start(text: str, question: Question) -> str | None:
    mentions = list(_mentions(text, question))
    return mentions[0][1] if mentions and not re.search(r"\w", text[: mentions[0][0]]) else None


def _mentions(text: str, question: Question) -> Iterator[tuple[int, str]]:
    """Where options are mentioned, in order, the longer one where two overlap; not those that are denied."""
    folded = re.sub(r"[_-]", " ", text.casefold())
    named = {_folded(name): label for label, meaning in (question.options or {}).items() for name in (meaning, label)}
    names = sorted((name for name in named if len(name) > 1), key=len, reverse=True)
    if not names:
        return
    pattern = "|".join(re.sub(r"\\ ", r"\\s+", re.escape(name)) for name in names)
    for found in re.finditer(rf"(?<![\w.])(?:{pattern})(?!\w|\.\d)", folded):
        before = folded[max(0, found.start() - 16) : found.start()]
        if not re.search(
            r"\b(?:not|n't|neither|nor|rather than|than|no|isn.t|over|instead of|versus|"
            r"vs\.?)\W+(?:an? |the )?$",
            before,
        ):
            yield found.start(), named[re.sub(r"\s+", " ", found[0])]


def _option(text: str, question: Question) -> str | None:
    """The one option that a text comes down to: alone, in bold, in its first sentence or in its last."""
    if not question.options:
        return None
    if question.want == "letter":
        alone = re.match(r"[\s*(]*([A-J])[).:*]*\s*(?:\n|$)", text)
        if alone and alone[1] in question.options:
            return alone[1]
        letter = said_letter(text)
        if letter and (letter[0] or len(text) < 1500) and letter[2] in question.options:
            return letter[2]
    said = sentences(text)
    if not said:
        return None
    label = re.match(r"[^:.\n]{1,40}:\s*(?=\S)", unmarked(said[0]))
    if whole := _as_option(text, question) or _as_option(unmarked(said[0])[label.end() if label else 0 :], question):
        return whole
    first, last = unmarked(said[0]), unmarked(said[-1])
    bold = {option for span in _bold(text) for _, option in _mentions(span, question)}
    if len(bold) == 1:
        return bold.pop()
    for sentence in (first, last, *(_OTHER.split(one)[0] for one in (first, last))):
        mentioned = [option for _, option in _mentions(sentence, question)]
        if len(set(mentioned)) == 1:
            return mentioned[0]
    if start := _option_at_start(first, question):
        return start
    for sentence in (last, first):
        fits = [
            option for place, option in _mentions(sentence, question) if _is_what_was_asked(sentence[place:], question)
        ]
        if len(set(fits)) == 1:
            return fits[0]
    for sentence in (last, first):
        after = re.search(r"(?:\b(?:is|as|be|was|are)\b|:|→)\s*(?:an? |the )?", sentence)
        if after and (start := _option_at_start(sentence[after.end() :], question)):
            return start
    return None


def _is_what_was_asked(text: str, question: Question) -> bool:
    """Whether an option is said to be what the question asks about: "9.9 is larger"."""
    said = re.match(r"\S+ (?:is|was|are|has) (?:the )?(\w+)", text)
    return said is not None and said[1].lower() in question.words


_OTHER = re.compile(r"\b(?:rather than|instead of|as opposed to|than|over|versus|vs)\b")


_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")


def _bold(text: str) -> list[str]:
    return [one or other for one, other in _BOLD.findall(text)]


# --- whole

_PERSONAL = re.compile(
    r"\b(?:i|i'm|i’m|i'd|i'll|i've|you|you're|you’re|your|we|we're|let's|let’s|me|my|us|our|please|here|here's|sure|"
    r"thanks|"
    r"thank|welcome|sorry|hello|hi|dear|ich|sie haben|je|vous|tu|yo|usted)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[{};<>|\\^~=]|\w\(|::|->|--\w|\$\w|\b(?:SELECT|FROM|def|import|return|print|const|var|git|sudo|npm|pip)\b|"
    r"^[/.]\w|\w/\w+/"
)
_MOST_WORDS = 5
_LABELLED = re.compile(r"(?P<label>[^\W\d_][\w -]{1,30}?)\s?[:：]\s*(?P<value>\S.*)", re.DOTALL)
_LABEL_NOUNS = (
    r"(?:sentiment|tone|category|label|intent|language|classification|class|verdict|result|priority|topic|severity|"
    r"rating|"
    r"emotion|type|answer|total|sum|difference|product|average|capital|date|year|time|name|department|score|subject)"
)
_IS = re.compile(
    r"(?:(?i:it|that|this)(?:['’]s| is| was| would be)|(?:(?i:the|its?|this|that|these|her|his|their)|[A-Z][\w’']*)\b"
    r"(?P<subject>[^.,:;?!\n]{0,80}?)\s(?:is|was|are|were|would be|will be|equals|lautet|ist|est|es))"
    r"\s(?:clearly |definitely |probably |likely |overall |in |an? |the )*(?P<value>(?:[^.,;:?!\n]|"
    r"[.,:](?=\d)){1,40})[.!]*",
)


def _bare_value(text: str, question: Question) -> str | None:
    """A response that is nothing but an amount, a date or a time, with or without a label before it."""
    bare = unmarked(text)
    if "\n" in bare or len(bare) > 120:
        return None
    bare = _trimmed(_without_label(bare))
    if _LIST.fullmatch(bare):
        return bare
    if question.want == "year":
        return None
    if question.want in ("time", "date") and values.time_in(bare):
        return None
    if values.amount(bare, question.scale, longest=_MOST_WORDS + 1):
        return bare
    if question.want == "number" and _FORMULA.fullmatch(bare):
        found: list[str] = re.findall(r"-?\d+(?:\.\d+)?", bare)
        fresh = [number for number in found if number not in question.numbers]
        if bare.count(",") > 1 and len(fresh) == 1:  # a sequence, continued
            return fresh[0]
        return bare if _SEVERAL.fullmatch(bare) else bare.rpartition("=")[2].strip()
    return bare if _as_date(bare, UNASKED) or (len(bare) <= 10 and values.time_in(bare)) else None


_FORMULA = re.compile(r"(?=.*[\d^√π])(?:\d|[a-z](?![a-z])|[-+*/^()=√π., ]|\\(?:sqrt|frac|pi|cdot)|[{}]){1,50}")


def _without_label(bare: str) -> str:
    labelled = _LABELLED.fullmatch(bare)
    fits = labelled and len(labelled["label"].split()) <= 3 and not _NO_LABEL.search(labelled["label"])
    return labelled["value"] if labelled and fits else bare


_NO_LABEL = re.compile(rf"^(?:in|note|tip|example|subject|hint|p\.?s|warning)\b|{_PERSONAL.pattern}", re.IGNORECASE)


def _whole(text: str, question: Question) -> str | None:
    """A response that is nothing but an answer."""
    bare = unmarked(text)
    if not bare or "\n" in bare or len(bare) > 120 or _QUESTION_BACK.search(bare):
        return None
    bare = _without_label(bare)
    said = _IS.fullmatch(bare)
    if said:
        value = said["value"]
        proper = re.match(r"[A-Z\d$€£(-]", value) is not None
        labels = re.search(rf"\b{_LABEL_NOUNS}\b", said["subject"] or "", re.IGNORECASE) is not None
        return value if (proper or labels) and len(bare.split()) <= 16 and len(value.split()) <= 3 else None
    exclaims = question.want is None and bare.rstrip().endswith("!")
    return None if exclaims else _short(bare)


_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|does|did|ist|sind|hat|est|son)\b|"
    r"\w['’](?:s|re|ll|ve|d)\s"
)


def _short(bare: str) -> str | None:
    """A text of a few words that is no sentence."""
    bare = _trimmed(bare)
    cut = re.fullmatch(r"(.{1,40}?)\s+\([^()]*\)", bare)
    bare = cut[1] if cut else bare
    if not 0 < len(bare.split()) <= _MOST_WORDS or re.search(r"[.!?;:]\s|,\s*(?![A-Z\d])|,.*,", bare):
        return None
    if (
        _PERSONAL.search(bare)
        or (_CODE.search(bare) and not _LIST.fullmatch(bare))
        or _VERB.search(bare)
        or not re.search(r"\w", bare)
    ):
        return None
    return bare


# --- verdict

_VERDICT = re.compile(
    r"\W*(?P<verdict>yes|no|yeah|yep|nope|ja|nein|oui|non|sí|sim|não|sì)\b(?P<mark>\s*(?:[.,;:!–—\n*]|-\s|"
    r"$)\W*)?(?P<rest>.{0,80})",
    re.IGNORECASE | re.DOTALL,
)
_COURTESY = re.compile(
    r"(?:of course|absolutely|certainly|sure|definitely|i(?:'d|’d| would| can| could|'ll|’ll| will|'m|’m| am)\b|"
    r"here\b|"
    r"let(?:'s|’s| me)|please|problem|worries|thanks|thank|happy|we can|go ahead|one|matter|need|doubt)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:(?:of course|absolutely|certainly|sure|definitely)[,!. ]+)?(?:i(?:'d|’d| would| can| could|'ll|’ll| will|"
    r"'m|’m| am) "
    r"(?:be )?(?:happy|glad|help|assist|do|able|able to|familiar)|here\b|let(?:'s|’s| me)|problem|worries|thanks)",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"\W*(?:absolutely|definitely|certainly|indeed|correct|that(?:'s|’s| is) (?:correct|right|true)|right|true|"
    r"of course|exactly)\b"
    r"(?P<not> not)?(?=\W*(?:$|[.,;:!–—]))",
    re.IGNORECASE,
)
_DISAGREES = re.compile(
    r"\W*(?:incorrect|false|that(?:'s|’s| is) (?:incorrect|false|not (?:correct|right|true))|"
    r"never)\b",
    re.IGNORECASE,
)
_ENDS_IN_VERDICT = re.compile(
    r"(?:^|\n|[.!] )\W*(?:so|therefore|thus|hence|in short|overall|short answer|in conclusion|bottom line|"
    r"to summari[sz]e)"
    r"[*_]*[,:]?[*_]* [*_]*(yes|no)\b[*_]*(?=[.,;:!\s]|$)|\n\W*(yes|no)\W*$|^\W*[^,.:;\n]{1,40}, [*_]*(yes|"
    r"no)\b[*_]*(?=[.,;:!]|$)",
    re.IGNORECASE,
)


_HEDGE = re.compile(
    r"\b(?:depend(?:s|ing)?|if you ask|in many|in most|generally|usually|typically|often|personally|in my opinion|"
    r"varies)\b",
    re.IGNORECASE,
)


def _verdict(text: str, question: Question) -> str | None:
    """A yes or no with its grounds."""
    if question.want not in ("any", "verdict") or question.options:
        return None
    asked = question.want == "verdict"
    if len(text.split()) > (250 if asked else 150):
        return None
    if _HEDGE.search(" ".join(sentences(text)[:2])):
        return None
    found = _VERDICT.match(text)
    if found:
        rest = found["rest"].lstrip(" *_,.!:;–—-")
        fits = found["mark"] or (asked and re.match(r"(?:it|this|that|he|she|they|you|there|the)\b", rest))
        if fits and not (_OFFER if asked else _COURTESY).match(rest):
            return found["verdict"]
        return None
    ends = _ENDS_IN_VERDICT.search(text)
    if ends:
        return next(verdict for verdict in ends.groups() if verdict)
    if asked:
        if agrees := _AGREES.match(text):
            return "no" if agrees["not"] else "yes"
        return "no" if _DISAGREES.match(text) else _echo(text, question)
    return None


_NOT = re.compile(
    r"not|never|cannot|can't|isn't|aren't|wasn't|weren't|doesn't|don't|didn't|won't|no|nicht|kein|"
    r"keine|pas"
)
_SMALL_WORDS = """
    a an the is was are were be been being it its it's that this these those of in on at by to for from as and or so
    which who what where when would will can could may might does do did has have had there with into about her his
    their they he she also very just only called known named answer correct right therefore thus hence then here
    actually indeed according based located currently der die das ist war von und le la les est de du des el los es
    son un une una ein eine c'est c you your i my we our
"""
_SMALL = frozenset(_SMALL_WORDS.split())


def _echo(text: str, question: Question) -> str | None:
    """The verdict of a sentence that says the question's words again, with or without a "not"."""
    said = sentences(unmarked(text))
    for sentence in {0: said[0], 1: said[-1]}.values() if said else ():
        clause = re.split(r",? (?:because|since|as|due to|given|if|unless|for)\b|[,;:(–—]", sentence)[0]
        words = [word.replace("’", "'") for word in words_of(clause)]
        content = [word for word in words if word not in _SMALL]
        new = [word for word in content if not _known(word, question) and not _NOT.fullmatch(word)]
        denied = any(_NOT.fullmatch(word) for word in words)
        same = len(content) - len(new) - denied
        conditional = re.search(r"\b(?:if|unless)\b", sentence) is not None
        if same >= 2 and not conditional and (not new or (denied and len(new) <= 3)):
            return "no" if denied else "yes"
    return None


def _known(word: str, question: Question) -> bool:
    """Whether a word is one of the question's, up to its ending."""
    stem = word[: max(4, len(word) - 3)]
    return word in question.words or (len(word) > 4 and any(known.startswith(stem) for known in question.words))


# --- lead and conclusion

_HEAD = re.compile(r"(?P<head>[^\n:;(–—]{1,40}?)(?P<end>\s*(?:[:;(–—\n]|\s-\s|,\s|\.\s|$))")


def _lead(text: str, question: Question) -> str | None:
    """An amount that opens the text, and then how it came about."""
    bare = unmarked(text)
    asked = question.want == "number"
    head = _HEAD.match(bare)
    if not head or _ITEM.match(text) or re.search(r"(?:^|\n)\s*2[.)]\s", bare) or prose.has_code(text):
        return None
    enumerated = re.match(r"\d{1,2}[.)]\s", bare) is not None
    if not asked and (
        enumerated or len(bare.split()) > 60 or bare.count("\n") > 3 or question.want not in ("any", "number")
    ):
        return None
    said, line = head["head"], re.sub(r"\([^()]*\)", "", bare.partition("\n")[0])
    if re.search(r", so\b", line) or (
        "=" in line and not head["end"].strip().startswith(":")
    ):  # a calculation that begins with a number
        return None
    if not asked and not re.match(r"\W{0,3}\d+(?!\s+[A-Z][a-z]{3})", said):  # "5 Tips: …" is a heading
        return None
    return values.amount(said, question.scale, longest=4 if not asked else 6)


_SO = re.compile(
    r"\W*(?:so|therefore|thus|hence|in total|altogether|in all|finally|overall|in conclusion|this means|that means|"
    r"as a result|consequently|the total|total|the result|result|also|somit|daher|insgesamt|donc|por lo tanto|"
    r"así que)\b"
    r"|.*\b(?:in total|altogether|in all|a total of|in the end|insgesamt|au total|en total|combined|overall|is left|"
    r"are left)\b",
    re.IGNORECASE,
)
_EQUATION = re.compile(
    rf"(?:=|≈|→|⇒|equals|equal to)\s*(?P<value>(?:[€£¥]|USD )?\s*{NUMBER.pattern})(?P<after>[^=≈\d\n]*)$"
)
_CHECK = re.compile(r"\W*(?:check|verif|proof|probe|note|here['’]s how|this is because)", re.IGNORECASE)
_COMES_TO = re.compile(
    rf"\b(?:that['’]s|that is|is|are|was|makes?|gives?|leaves?|left with|total of|comes? to|get|pays?|owes?|sind|"
    rf"bleiben|"
    rf"reste|hay)"
    rf"(?: \w+){{0,2}}? (?P<value>[€£¥]?{NUMBER.pattern})(?:\s+[^\W\d_.]+){{0,4}}\s*(?:\([^()]*\)|:.*)?[.!]*$"
)
_SEVERAL = re.compile(r"\b([a-z]) ?= ?-?\d[\d./]*(?:(?:,? (?:or|and) |, )(?:\1 ?= ?)-?\d[\d./]*)+")
_ITEM = re.compile(r"[ \t]*(?:[-*•]|\d+[.)])[ \t]+\S")


def _conclusion(text: str, question: Question) -> str | None:
    """The result at the end of a calculation."""
    asked = question.want == "number"
    if question.want not in ("any", "number", "name") or question.options or prose.has_code(text) or "|--" in text:
        return None
    said = [one for one in sentences(text) if unmarked(one) and not _CHECK.match(one)]
    if not said or len(text.split()) > (900 if asked else 200):
        return None
    alone = len(said) == 1 and question.want != "name"
    places = [said[-1], *said[-2:-4:-1], said[0]] if asked else said[-1:]
    places = [one for one in places if len(one.split()) <= 40 and (asked or not _ITEM.match(one))]
    results = [result for one in places if (result := _result(one, question, asked, alone))]
    fresh = [result for result in results if result not in question.numbers]
    return next(iter(fresh or results), None)


def _result(sentence: str, question: Question, asked: bool, alone: bool) -> str | None:
    """The number that a sentence comes to."""
    bare = _last_clause(unmarked(sentence))
    several = _SEVERAL.search(bare)
    if several:
        return several[0]
    equation = _EQUATION.search(bare)
    if equation and len(equation["after"].split()) <= 6:
        return _number_in(equation["value"])
    bold = [one for one in (values.amount(unmarked(span)) for span in _bold(sentence)) if one]
    if len(bold) == 1 and (asked or alone or _SO.match(bare) or sentence.rstrip(".! ").endswith("**")):
        return bold[0]
    numbers = [_number_in(number[0]) for number in NUMBER.finditer(_without_labels(bare))]
    concludes = _SO.match(bare) is not None
    if not numbers:
        return _spoken(bare, question) if asked else None
    fresh = [number for number in numbers if number.rstrip("%").strip() not in question.numbers]
    if not (asked or concludes or (alone and _is_plain(bare))):
        return None
    if question.scale and (graded := re.search(rf"(\d+(?:\.\d+)?)\s*(?:/|out of|of)\s*{question.scale}\b", bare)):
        return graded[1]
    if len(set(numbers)) == 1:
        return numbers[0]
    if asked and len(set(fresh)) == 1:
        return fresh[0]
    comes = _COMES_TO.search(bare) if asked else None
    if comes:
        return _number_in(comes["value"])
    before = [plain_number(number[0]) for number in NUMBER.finditer(re.split(r":\s|\s\([^()]*\)\W*$", bare)[0])]
    if asked and len(before) == 1 and before[0] not in question.numbers:
        return before[0]
    return numbers[-1] if asked and concludes else None


def _is_plain(sentence: str) -> bool:
    """Whether a sentence is short and states something, to nobody in particular."""
    short = sentence[:1].isupper() and len(sentence.split()) <= 15
    return short and not _PERSONAL.search(sentence) and not re.search(r"[{};<>|\\~]|--\w|\w\(", sentence)


def _last_clause(sentence: str) -> str:
    clause = re.split(r"[,;] (?:and )?(?:so|therefore|thus|hence|which means|meaning|that is)\b,?", sentence)[-1]
    clause = re.split(r",? (?:because|since|as|due to|da|weil|denn|car|puisque|porque|ya que)\b", clause)[0]
    return clause if re.search(r"\d", clause) or _spoken(clause, UNASKED) else sentence


def _number_in(text: str) -> str:
    return plain_number(re.sub(r"^(?:[€£¥]|USD |\+ |- )\s*", "", text.strip()))


def _without_labels(text: str) -> str:
    """Without what numbers a part of the text: "Step 3:", "section 8.2"."""
    return re.sub(
        r"\b(?:step|section|part|chapter|figure|table|page|article|clause|question|version|no\.|"
        r"#)\s*\d[\d.]*:?",
        "",
        text,
        flags=re.I,
    )


def _spoken(text: str, question: Question) -> str | None:
    """The one number of a sentence that is written in words."""
    found, place = set(), 0
    for word in re.finditer(r"\b[a-z]+", text, re.IGNORECASE):
        if word.start() >= place and (spoken := values.number_in_words(text[word.start() :])):
            found.add(str(spoken[0]))
            place = word.start() + spoken[1]
    found -= {"1"} if len(found) > 1 else set()
    return found.pop() if len(found) == 1 else None


# --- told

_DAYS = re.compile(r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", re.IGNORECASE)
_TOLD_AT_MOST = 120
_TOKEN = re.compile(r"[^\W_][\w.'’&-]*")


_SHOWN = re.compile(r"[^\n`]{1,120}:\s*```\w*\n([^\n`]{1,60})\n```")
"""A sentence that announces what stands in the block after it."""


def _told(text: str, question: Question) -> str | None:
    """What the first or the last sentence adds to the words of the question."""
    shown = _SHOWN.match(text) if question.want in ("name", "number", "any") else None
    if shown:
        return shown[1]
    said = sentences(text)
    if not said or prose.has_code(text) or len(text.split()) > _TOLD_AT_MOST:
        return None
    places = [said[0], said[-1]] if len(said) > 1 else said
    if question.want == "time":
        places = [said[-1], said[0]]
        return next(
            (
                found
                for one in places
                if (found := _bold_or(values.time_in, one) or values.time_in(unmarked(one), True))
            ),
            None,
        )
    if question.want == "year":
        return next((found for one in places if (found := _year_told(one, question))), None)
    if question.want == "date":
        return next((found for one in places if (found := _date_told(one, question))), None)
    if question.want == "name":
        if addresses := set(_ADDRESS.findall(text)):
            return addresses.pop().rstrip(".,") if len(addresses) == 1 else None
        places = said[:1] + [one for one in said[1:][-1:] if _SO.match(unmarked(one)) or _bold(one)]
        return next((found for one in places if (found := _name_told(one, question))), None)
    return None


_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def _bold_or(read: Callable[[str], str | None], sentence: str) -> str | None:
    found = [one for one in map(read, _bold(sentence)) if one]
    return found[-1] if found else None


def _date_told(sentence: str, question: Question) -> str | None:
    bare = unmarked(sentence)
    if date := _bold_or(values.date_in, sentence) or values.date_in(bare):
        return date
    days = {day.capitalize() for day in _DAYS.findall(bare) if day.lower() not in question.words}
    if days:
        return days.pop() if len(days) == 1 else None
    return _year_told(sentence, question)


def _year_told(sentence: str, question: Question) -> str | None:
    """The year of a sentence: in bold, or the only one, or the one after "in"."""
    for part in (*_bold(sentence), unmarked(sentence)):
        years = [
            year
            for year in re.findall(r"(?<![\d.,$€])[12]\d{3}(?!\d|%|,\d)|\b\d{2,4}(?= (?:BC|AD|CE))", part)
            if year not in question.numbers
        ]
        if len(set(years)) == 1:
            return str(years[0])
    named: list[str] = re.findall(r"\b(?:in|was|year) ([12]\d{3})\b", unmarked(sentence))
    return named[0] if len(set(named)) == 1 else None


_REASON = re.compile(
    r"(?<=\w)(?:,? (?:which|because|since|where|although|though|and (?:it|is|was|not)|not|meaning)\b|;| \(| [–—-] )"
)
_SELF = re.compile(r"\b(?:i|i['’]\w+|you|your|my|me|please|let['’]s)\b", re.IGNORECASE)


_LIST = re.compile(r"\[[^\[\]\n]{1,60}\](?!\()|\bO\([^()\n]{1,20}\)")
"""A list in brackets, or the order of an algorithm."""
_SETTING = re.compile(
    r"(?:since|because|as|although|while|given|after|when|in|on|according to|"
    r"based on)\b[^,]{1,80}, (?=\S)",
    re.IGNORECASE,
)


def _without_setting(sentence: str) -> str:
    setting = _SETTING.match(sentence)
    return sentence[setting.end() :] if setting else sentence


def _name_told(sentence: str, question: Question) -> str | None:
    """The name in a sentence that answers: marked, before the verb, or after it."""
    if sentence.rstrip("*_ ").endswith(":"):
        return None
    lists: set[str] = set(_LIST.findall(_REASON.split(unmarked(sentence))[0]))
    if len(lists) == 1:
        return lists.pop()
    marked = _bold(sentence) or re.findall(r"`([^`\n]{1,60})`", sentence)
    marked = [span for span in marked if len(span.split()) <= _MOST_WORDS and _new_words(span, question)]
    if len(marked) == 1:
        return marked[0].rstrip(":")
    bare = re.sub(r" you (?:provided|gave|shared|sent|quoted)\b", "", unmarked(sentence))
    so = re.search(r", so (?:it is |it's )?(\S+(?: \S+){0,3})$", bare)
    bare = so[1] if so else _REASON.split(_last_clause(_without_setting(bare)))[0]
    if len(bare.split()) > 30 or sentence.endswith(":") or _SELF.search(bare):
        return None
    head = bare.partition(",")[0]
    tells = head != bare and re.search(r"\s(?:is|was|are|were|est|ist|es)\b|^[A-Z]\S*(?: [A-Z]\S*)*$", head)
    return (_name_in(head, question) if tells else None) or _name_in(bare, question)


def _name_in(clause: str, question: Question) -> str | None:
    spans = _spans(clause, question)
    if not spans:
        return None
    start, end, first = spans[0]
    subject = re.match(r"[A-Z]\S*(?: [A-Z]\S*)*(?= [a-z])", first)
    if start == 0 and subject and "who" in question.words:  # "Priya owns it"
        return subject[0]
    after = next(iter(words_of(clause[end:])), "")
    proper = [span for span in spans if all(word[0].isupper() or word.lower() in _SMALL for word in span[2].split())]
    if start == 0 and proper[:1] == spans[:1] and (not after or after in _SMALL or _known(after, question)):
        return first
    by = re.search(r"\bby (?=[A-Z])", clause)
    if by and (named := next((span[2] for span in spans if span[0] >= by.end()), None)):
        return named
    later = [span for span in proper if span[0] > 0]
    if len(later) == 1:
        return later[0][2]
    numbers = {plain_number(number[0]) for number in NUMBER.finditer(clause)} - question.numbers
    if not later and len(numbers) == 1:
        return numbers.pop()
    return first if len(spans) == 1 and len(first.split()) <= _MOST_WORDS else None


def _new_words(text: str, question: Question) -> bool:
    return any(word not in _SMALL and word not in question.words for word in words_of(text))


def _spans(sentence: str, question: Question) -> list[tuple[int, int, str]]:
    """The runs of words that are neither the question's nor small: where each begins and ends, and what it is."""
    spans: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(sentence):
        word = next(words_of(token[0]), "")
        if not word or word in _SMALL or word in question.words:
            continue
        if spans and re.fullmatch(
            r"\s+(?:(?:of|the|de|da|van|von|di|du|la|le|"
            r"and)\s+)*",
            sentence[spans[-1][1] : token.start()],
        ):
            joins = sentence[spans[-1][1] : token.start()].strip()
            if not joins or (token[0][0].isupper() and sentence[spans[-1][0]].isupper()):
                spans[-1] = (spans[-1][0], token.end())
                continue
        spans.append((token.start(), token.end()))
    return [(start, end, sentence[start:end].rstrip(".'’-")) for start, end in spans]


_READERS: tuple[tuple[Kind, Callable[[str, Question], str | None]], ...] = (
    ("stated", _stated),
    ("nothing", _nothing),
    ("option", _option),
    ("verdict", _verdict),
    ("whole", _bare_value),
    ("lead", _lead),
    ("conclusion", _conclusion),
    ("told", _told),
    ("whole", _whole),
)
