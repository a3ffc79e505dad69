"""What a request asks for: whether it has one answer, and what such an answer would look like.

A request is read for the sentences that tell what to do: those of the first paragraph, of the last, and whatever
follows "Question:". What stands between is material (a document, a review, code), and so is what is in quotation
marks: it may say "write to us" or "yes or no" without being meant. Three things may come of it.

- *one answer*, where the request says in which form it wants it (a box, a letter, a word, one of some labels): then
  every response is expected to have one, and no scout is needed to find out;
- *none*, where it asks for a text of any kind (a poem, an e-mail, code, an explanation, a translation, a title, small
  talk): two good texts are never the same, so a vote over them could only pick one for a detail in it;
- *unknown*, anything else, questions above all: the first response shows whether there is an answer.

What looks like both is unknown if a form is asked for: to be wrong about "one answer" costs many samples, to be wrong
about "none" costs the vote, and to be unsure costs next to nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from suffice.answers.prose import sentences, words_of

Want = Literal["any", "number", "verdict", "time", "date", "year", "name", "letter"]


@dataclass(frozen=True)
class Question:
    """What a request asks for; of one that says nothing all is left open."""

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
    told = "\n\n".join(_text(one.get("content")) for one in messages if one.get("role") in ("system", "developer"))
    return _question(_bounded(asked), _bounded(told), is_first=len(users) == 1)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LONGEST = 8000
"""Characters of a request that are read: as many of its beginning as of its end."""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS]
    return "\n\n".join(text for text in texts if isinstance(text, str))


_TEXT_PARTS = ("text", "input_text")


def _bounded(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}\n\n{text[-half:]}"


def _question(asked: str, told: str, is_first: bool) -> Question:
    instructions = _instructions(asked)
    system = [sentence for sentence in sentences(_bare(told)) if not _CONDITION.match(sentence)]
    task = _task(instructions)
    options = _letters(asked) or _labels(asked) or _labels(told) or _alternatives(instructions)
    asks_form = any(_FORM.search(sentence) for sentence in instructions) or _has_hash(asked)
    system_form = any(_FORM.search(sentence) for sentence in system) or bool(_labels(told))
    listed = bool(_letters(asked) or (_labels(asked) and task != "text"))
    one: bool | None = None
    if asks_form and not (task == "text" and _opens_with_text(instructions)):
        one = True
    elif _SMALL_TALK.fullmatch(" ".join(asked.split())):
        one = None if system_form else False
    elif task == "text":
        one = None if system_form or asks_form else False
    elif listed or system_form:
        one = True
    asking = " ".join(_asking(instructions))
    want = _want_of(instructions) if not options else None
    if options and all(len(label) == 1 and label.isupper() for label in options):
        want = "letter"
    scale = _SCALE.search(asking)
    return Question(
        has_one_answer=one,
        want="number" if scale and not options else want,
        options=options or None,
        words=frozenset(words_of(asking)),
        numbers=frozenset(re.findall(r"\d[\d,]*(?:\.\d+)?", asked)),
        scale=(scale[1] or scale[2]) if scale else None,
    )


# --- the sentences that tell what to do

_FENCE = re.compile(r"```.*?(?:```|\Z)|<(\w{2,20})>.*?</\1>", re.DOTALL)
_QUOTED = re.compile(r'"[^"\n]{12,}"|“[^”\n]{12,}”|«[^»\n]{8,}»|(?<!\w)\'[^\'\n]{12,}\'(?!\w)')
_LABELLED = re.compile(
    r"(?:^|\n)[ \t>*#]*(?:user |the )?(?:question|query|task|instructions?|problem|frage|aufgabe|pregunta|tarea|"
    r"domanda)"
    r"\s*[*]*:[*]*[ \t]*",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"[>*#\s]*(?:context|background|documents?|passage|article|text|excerpt|source|email|review|contract|policy|"
    r"kontext)"
    r"\b[^.?!\n]{0,40}[:\n]",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\W*(?:if|when|whenever|for|in case|unless)\b", re.IGNORECASE)
_MOST_SENTENCES = 8


def _bare(text: str) -> str:
    """Without fenced code, tagged documents, long quotations and marks of emphasis."""
    text = _QUOTED.sub('""', _FENCE.sub("\n\n", text))
    return re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}", "", text)


def _instructions(asked: str) -> list[str]:
    """The sentences of a user's message that tell what to do, rather than what to do it with."""
    text = _bare(asked).strip()
    labels = list(_LABELLED.finditer(text))
    if labels:
        text = text[labels[-1].end() :]
    paragraphs = [one for one in re.split(r"\n\s*\n", text) if one.strip()]
    if not paragraphs:
        return []
    first, last = sentences(paragraphs[0]), sentences(paragraphs[-1])
    if len(paragraphs) == 1:
        first = _before_material(first)
        return first if len(first) <= 2 * _MOST_SENTENCES else first[:_MOST_SENTENCES] + first[-_MOST_SENTENCES:]
    first = [] if _CONTEXT.match(paragraphs[0]) else _before_material(first[:_MOST_SENTENCES])
    ends = last[-_MOST_SENTENCES:]
    if first and _task(first) is not None:  # what comes after is what it speaks of, but may still say in which form
        ends = [sentence for sentence in ends if _FORM.search(sentence) or _ASKED_LAST.search(sentence)]
    return first + ends


_ASKED_LAST = re.compile(r"^(?:what|which|who|how (?:many|much)|is|are|does|do|can)\b[^.]*\?$", re.IGNORECASE)


def _before_material(said: list[str]) -> list[str]:
    """The sentences up to one that ends in a colon and says what to do with the rest."""
    for place, sentence in enumerate(said):
        if sentence.endswith(":") and _kind(sentence) is not None:
            after = [one for one in said[place + 1 :] if _FORM.search(one)]
            return said[: place + 1] + after
    return said


# --- what kind of task it is

_POLITE = (
    r"\W*(?:(?:hi|hello|hey|dear)\b[^,.!?]{0,20}[,.!]\s*)?(?:(?:ok(?:ay)?|now|then|also|so|and|but|please|pls|"
    r"kindly|just|"
    r"first|next|finally|lastly|your (?:task|job|goal) is to|you (?:should|must|are to|need to)|"
    r"i(?:'d|’d| would) (?:like|love)(?: you)? to|i (?:need|want)(?: you)? to|i (?:need|want) (?:some )?help (?:to|"
    r"with)|"
    r"i(?:'m| am) trying to|(?:i need you to )?help me(?: to)?|help(?: me)? with|"
    r"(?:can|could|would|will) (?:you|u)(?: please| kindly| maybe| also| quickly)?(?: help(?: me)?(?: to)?)?|"
    r"would you mind|let(?:'s|’s| us)|try to|go ahead and|use this to|based on (?:this|that|the above),?|"
    r"bitte|kannst du(?: mir)?|könntest du|können sie|por favor|puedes|podrías|s'il te plaît|peux-tu|"
    r"pouvez-vous)[\s,:]+)*"
)
_SUM = r"(?!\s+(?:[-\d.(\\$√∫x]|the (?:expression|equation|fraction|integral|sum|value|polynomial|number)))"
_WRITES = re.compile(
    _POLITE
    + r"(?:write(?! (?:only|just|down|out)? ?(?:your|the) (?:final )?(?:answer|letter|number|result|equation|fraction)"
    r"|\s+\$?[-\d.,/\\]+\S* (?:as|in))"
    r"|rewrite|re-write|reword|rephrase|paraphrase|draft|compose|author|pen\b|create|generate(?! the next)|craft|"
    r"come up with|brainstorm|invent|imagine|pretend|act as|play (?:the|a)|role-?play|you are (?:now )?an? |"
    r"translate|transcribe|summari[sz]e|sum up|tl;?dr|condense|shorten|polish|proofread|edit (?:this|the|my)|"
    r"improve|refactor|debug|fix|implement|code\b|program\b|build|design|develop|optimi[sz]e (?:this|the|my)|document|"
    r"review|critique|critici[sz]e|comment on|give (?:me )?feedback|make (?:this|it|me|a|an|my|the)|turn (?:this|it|"
    r"these|the)|"
    r"format|reformat|convert (?:this|it|these|the following|my|the (?:code|text|list|csv|json|function))|"
    r"continue|finish (?:this|the|my)|complete (?:this|the|my) (?:story|poem|code|function|paragraph|sentence)|"
    r"recommend|suggest|advise|propose|plan (?:a|an|my|our|me|the)|organi[sz]e|outline|prepare|list\b|enumerate|"
    r"tell (?:me|us) (?:a|an|some|something|about|more|your)|talk (?:to me )?about|teach|show me|walk me|guide me|"
    r"sing|"
    r"say (?:something|hi|hello|thank|goodbye)|wish|congratulate|respond to (?:this|the|my)|reply to (?:this|the|my)|"
    r"add (?:a|an|some|comments|tests|type|error|more)\b|name (?:\d+|two|three|four|five|ten|some|a few|my|this|our)|"
    rf"simplify{_SUM}|expand{_SUM}|analy[sz]e{_SUM}|compare(?! (?:[-\d$]|which))|contrast|discuss|describe|define|"
    r"elaborate|clarify|explore|argue|debate|speculate|reflect on|pick a random|choose a random|"
    r"schreib|verfasse|übersetze?\b|fasse?\b|formuliere|erzähl|dichte|erstelle|entwirf|verbessere|korrigiere|"
    r"nenne? mir|"
    r"gib mir (?:ein|ein paar|tipps|ideen)|beschreib|erklär|"
    r"écri[st]\b|écrivez|rédige|tradui|résume|raconte|explique|décri[st]|propose|corrige|reformule|donne-moi (?:des|"
    r"un)|"
    r"escrib|redacta|traduce|traduzca|resume\b|resumir|cuéntame|explica|describe|sugiere|corrige|reescrib|"
    r"dame (?:ideas|un)|"
    r"scrivi|traduci|riassumi|spiega|raccontami|escreva|escreve|traduza|conte|sugira)",
    re.IGNORECASE,
)  # fmt: skip
_EXPLAINS = re.compile(
    _POLITE + r"(?:explain|justify|show (?:your|all|the) (?:work|steps?|working|reasoning)|describe your|"
    r"give (?:me )?(?:a |an )?(?:brief |short )?(?:reason|explanation)|why(?: or why not)?\?)",
    re.IGNORECASE,
)
_TEXTS = (
    r"(?:poem|haiku|limerick|sonnet|song|lyrics|rap|verse|story|tale|joke|pun|riddle|slogan|tagline|catchphrase|motto|"
    r"titles?|headlines?|captions?|subject lines?|hashtags?|tweet|post|blog|article|essay|paragraph|e-?mail|letter|"
    r"message|note|reply|response|comeback|speech|toast|script|dialogue|scene|bio|biography|description|outline|"
    r"summary|"
    r"synopsis|recap|overview|breakdown|recipe|itinerary|plan|schedule|checklist|template|code|snippet|function|"
    r"program|"
    r"class|query|regex|regular expression|command|one-?liner|bash|sql|tests?|docstring|proposal|report|"
    r"cv|press release|agenda|names?|ideas?|tips?|ways|suggestions?|recommendations?|examples?|advice|analogy|"
    r"metaphor|"
    r"greeting|wish(?:es)?|pick-up line|quote|compliment|prompt|quiz|list|table|diagram|explanation|walkthrough|"
    r"tutorial|"
    r"translation|synonyms?|rewrite|version|gedicht|witz|geschichte|poème|blague|histoire|poema|chiste|cuento|"
    r"historia|"
    r"résumé|feedback|help|hand)"
)
_WISHES = re.compile(
    r"\b(?:give|gives|need|want|like|love|make|get|have|looking for|looking to|got|know|do|send|share|offer|provide|"
    r"produce|what(?:'s|’s| is| are| would be))\b(?: me| us| you)?(?: with)? (?:an?\b|some|any|another|a few|few|"
    r"several|\d+|two|three|four|five|ten|more|good|your)\b"
    rf"[^.?!:\n]{{0,60}}?\b{_TEXTS}\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    _POLITE + r"(?:(?:can|could) you tell me |do you know |i(?:'m| am) wondering |i wonder |tell me )?(?:"
    r"why\b|how (?:do|does|did|can|could|would|should|might|to|come|is|are|was|were|about|has|have|will)\b|"
    r"what (?:do|would|did) (?:you|people|i)\b|what (?:should|would|could|can|will happen|happens|happened|might|"
    r"causes|"
    r"makes|does .* mean|if|kind of advice)\b|what(?:'s|’s| is| are) (?:an? good|some|the (?:best|main|key|major|"
    r"most common|"
    r"pros|cons|benefits|advantages|disadvantages|drawbacks|differences?|reasons?|causes?|effects?|symptoms|steps|"
    r"ways|"
    r"advice|point of|purpose of|idea|meaning of life|significance|implications|history|story|deal))\b(?![^?]*\d)|"
    r"what(?:'s|’s) (?:up|new|going on)|should (?:i|we|my)\b|(?:which|who|where|when|what)\b[^?]{0,60} should (?:i|"
    r"we)\b|"
    r"is it (?:worth|a good idea|okay|ok|normal|bad)\b|any (?:ideas|tips|advice|suggestions|thoughts|"
    r"recommendations)\b|"
    r"thoughts\b|is there an? (?:good|better|easy|way)\b|tell me (?:about|more)|(?:who|how|what) are (?:you|u|"
    r"things)\b|"
    r"what(?:'s|’s| is) your (?:name|favou?rite|opinion|view|take)|do you (?:like|think|feel|have|want|remember|"
    r"believe)\b|"
    r"are you (?:an? )?(?:ai|human|robot|bot|sentient|conscious|real|there|okay|ok|alive|sure)\b|"
    r"i(?:'m| am) (?:feeling|so|really|very|sad|stressed|bored|worried|looking)\b|i feel\b|i(?:'ve| have) been\b|"
    r"i don(?:'|’)t know\b|"
    r"warum|wieso|weshalb|wie (?:kann|geht|funktioniert|macht|soll)|was (?:soll|kann) ich|pourquoi|comment\b|"
    r"por qué|cómo\b|¿por qué|¿cómo|perché|come (?:si|posso))",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"\W*(?:(?:many |ok(?:ay)?,? |oh,? |great,? |perfect,? |awesome,? |cool,? |no,? |yes,? )*"
    r"(?:thanks?|thank you|thx|ty|cheers|hi|hello|hey|yo|good (?:morning|afternoon|evening|night|day)|bye|goodbye|"
    r"see you|"
    r"ok(?:ay)?|k|cool|great|awesome|nice|perfect|lol|haha+|wow|got it|sounds good|sure|yes|no|yep|nope|never ?mind|"
    r"how are you|how(?:'s| is) it going|what(?:'s|’s) up|sup|sorry|congrats|well done|good job|you(?:'re|"
    r"’re) welcome|"
    r"happy birthday|merry christmas|test|testing|ping|danke|vielen dank|hallo|guten (?:tag|morgen|abend)|tschüss|"
    r"moin|"
    r"merci|bonjour|salut|bonsoir|au revoir|gracias|muchas gracias|hola|buenos días|buenas|adiós|grazie|ciao|"
    r"buongiorno|"
    r"obrigad[oa]|olá|谢谢|你好|ありがとう|こんにちは|спасибо|привет)\b"
    r"(?!,? (?:what|who|when|where|which|how (?:many|much))\b)"
    r"[^?\n]{0,60}\??\W*)",
    re.IGNORECASE,
)  # fmt: skip


def _kind(sentence: str) -> Literal["text", "explanation", "question"] | None:
    """What a sentence asks for, if anything."""
    if _EXPLAINS.match(sentence):
        return "explanation"
    if _WRITES.match(sentence) or _WISHES.search(sentence):
        return "text"
    if _OPEN.match(sentence) and not _HOW_MANY.search(sentence):
        return "text"
    return "question" if _want(sentence) or sentence.endswith("?") or _ALTERNATIVES.search(sentence) else None


def _task(said: list[str]) -> Literal["text", "question"] | None:
    """What the sentences ask for together: to explain an answer is no text of its own, to explain all else is."""
    kinds = [_kind(sentence) for sentence in said]
    if "text" in kinds:
        return "text"
    if "question" in kinds:
        return "question"
    return "text" if "explanation" in kinds else None


def _opens_with_text(said: list[str]) -> bool:
    return bool(said) and _kind(said[0]) == "text"


def _asking(said: list[str]) -> list[str]:
    return [sentence for sentence in said if _kind(sentence) == "question"] or said


# --- the form that is asked for

_UNIT = (
    r"(?:words?|letters?|numbers?|numerals?|digits?|labels?|options?|choices?|categor(?:y|ies)|class(?:es)?|answers?|"
    r"integers?|values?|dates?|years?|names?|city|country|language|percentages?|amount|figure|results?|time|"
    r"yes|no|true|false|sentiment|intent|score|rating|fraction|decimal|wort|zahl|buchstaben?|mot|nombre|lettre|"
    r"palabra|número|letra|name|jahr)"
)
_FORM = re.compile(
    r"\\boxed|\bboxed\b|\bfinal (?:numerical |numeric )?answer\b|\bendgültige antwort\b|\bréponse finale\b|"
    r"\brespuesta final\b|"
    r"\b(?:in|with|using|as) (?:(?:only|just|exactly) )?(?:one|a single|1|a one|einem|un seul|una sola) (?:word|"
    r"letter|number|"
    r"label|wort|buchstaben|mot|palabra|digit|integer)\b|\b(?:one|single)-word (?:answer|label|reply|response)\b|"
    r"\b(?:answer|reply|respond|response|output|return|say|write|give|provide|print|state|choose|pick|select|antworte|"
    r"réponds|responde)\b[^.!?\n]{0,40}\b(?:yes or no|yes/no|true or false|true/false|ja oder nein|oui ou non|"
    r"sí o no|y/n)|"
    r"\((?:yes or no|yes/no|true/false|true or false|y/n|ja/nein|oui/non|sí/no)\)|^\W*(?:true or false|yes or no)\b|"
    r"\b(?:true or false|yes or no)\W*$|"
    r"\b(?:only|just|exactly|nothing but|simply|nur|seulement|uniquement|solo|sólo) (?:with |in |by |as |mit |avec |"
    r"con |par )?"
    rf"(?:the |a |an |one |one of |its |your |that |this |der |die |dem |das |le |la |el |un |una |einem? )?"
    rf"(?:\w+ ){{0,2}}?{_UNIT}\b(?! (?:of|code|text|version|file|translation))|"
    rf"\b(?:answer|reply|respond|output|return) (?:only )?(?:with |as )(?:the |a |an |one |"
    rf"one of )(?:\w+ ){{0,2}}?{_UNIT}\b|"
    rf"\b(?:the )?(?:answer|reply|output) (?:should|must) be (?:a |an |one |the )?(?:single )?{_UNIT}\b|"
    r"\bno (?:explanation|other text|words|units|punctuation)\b",
    re.IGNORECASE,
)


def _has_hash(asked: str) -> bool:
    return "####" in asked and re.search(r"\banswer\b", asked, re.IGNORECASE) is not None


# --- what to choose from

_LISTED = re.compile(
    r"(?:^|\n|\s{2,}|(?<=\s)(?=\())[ \t>*-]*\(?([A-J])[).:][ \t]+([^\n]{1,200}?)(?=\s+\(?[B-J][).:][ \t]|\n|$)"
)


def _letters(asked: str) -> dict[str, str]:
    """The options with letters, each with its text: "A) Mercury"."""
    listed: dict[str, str] = {}
    for letter, text in _LISTED.findall(asked):
        if letter == chr(ord("A") + len(listed)):
            listed[letter] = text.strip(" .*")
        elif letter == "A":
            listed = {letter: text.strip(" .*")}
    return listed if len(listed) > 1 else {}


_LABEL = r"[\w&+#-][\w&+#'’/-]*(?:[ _][\w&+#'’-]+){0,3}?"
_ITEM = rf"[\"'“‘`*\[(]*{_LABEL}[\"'”’`*\])]*(?: ?\([^()\n]{{1,80}}\))?"
_LIST = re.compile(
    rf"(?P<first>{_ITEM})(?P<rest>(?:\s*(?:,|/|\||;)\s*(?:or |and |oder |ou |o )?{_ITEM})*)"
    rf"(?P<last>,?\s+(?:or|and|oder|ou|o)\s+{_ITEM})?(?=[\s.:;!?)\]\n]|$)"
)
_LISTS = re.compile(
    r"\b(?:(?:exactly |only )?one of(?: the following| these| those)?(?: \w+){0,2}|either|"
    r"classif\w+[^.\n]{0,80}? (?:as|into|in)|"
    r"label\w*[^.\n]{0,60}? as|categori[sz]e[^.\n]{0,60}? (?:as|into)|route[^.\n]{0,60}? to|tag[^.\n]{0,40}? as|"
    r"(?:possible |valid |allowed |available )?(?:options|labels|categories|classes|intents|choices|departments|"
    r"queues|teams)"
    r"(?: are)?|choose (?:from|between|among)|select (?:from|between)|pick (?:from|between)|"
    r"klassifiziere[^.\n]{0,60}? als|"
    r"answer with|respond with|reply with|antworte mit|determine (?:if|whether)[^.\n]{0,60}? is)"
    r"(?!\w)",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"\s*(?:(?:exactly|only|just|either)\s+)?(?:(?:one|"
    r"1) of\b)?(?:\s*the following)?(?:\s+\w+){0,2}?\s*[:=\n–-]\s*[\[({]?\s*"
    r"|\s*(?:(?:exactly|only|just|either)\s+)?(?:(?:one|1) of\b)?(?:\s*the following)?\s*[\[({]?\s*",
    re.IGNORECASE,
)
_BULLETS = re.compile(r"(?:[ \t]*(?:[-*•]|\d[.)])[ \t]+[^\n]{1,160}(?:\n|$)){2,}")
_NO_LABELS = _set("the a an it this that them both each others following these those text message review email so then")


def _labels(text: str) -> dict[str, str]:
    """The labels that a request lists to choose from, each as it writes it."""
    bare = re.sub(r"\*\*|`", "", text)
    for trigger in _LISTS.finditer(bare):
        after = _LEAD_IN.sub("", bare[trigger.end() : trigger.end() + 600], count=1)
        bullets = _BULLETS.match(after.lstrip("\n"))
        if bullets:
            items = [
                re.split(r"\s*(?::|–|—| - |\()", one)[0]
                for one in re.findall(r"(?:[-*•]|\d[.)])[ \t]+([^\n]+)", bullets[0])
            ]
        else:
            items = _listed_items(after)
        labels = {_trimmed(item): _trimmed(item) for item in items}
        if 2 <= len(labels) <= 40 and all(
            0 < len(label.split()) <= 4 and label.lower() not in _NO_LABELS for label in labels
        ):
            return labels
    return {}


def _listed_items(text: str) -> list[str]:
    listed = _LIST.match(text)
    if not listed or not (listed["last"] or re.search(r"[,/|;]", listed["rest"])):
        return []
    whole = re.sub(r"\([^()]*\)", "", listed[0])
    return [item for item in re.split(r"\s*(?:,|/|\||;|\b(?:or|and|oder|ou|o)\b)\s*", whole) if item.strip()]


def _trimmed(item: str) -> str:
    return re.sub(r"^(?:an?|the|is)\s+", "", item.strip(" \t\n.,;:\"'“”‘’`*[](){}"), flags=re.IGNORECASE)


_THING = r"[$€£]?[\w.%°/-]*\w%?"
_ALTERNATIVES = re.compile(
    rf"(?:(?P<many>{_THING}(?:, {_THING})+),? or (?:an? |the )?(?P<last>{_THING})"
    rf"|(?P<one>{_THING}) or (?:an? |the |is it |just |"
    rf"a single )?(?P<other>(?:not )?{_THING}))\b(?=[^.!\n]{{0,60}}[?:]|\W*$)",
    re.IGNORECASE,
)
_NO_ALTERNATIVES = _set("more less so not fewer later two one three not no he she they it and earlier over under")


def _alternatives(said: list[str]) -> dict[str, str]:
    """The things between which a question leaves the choice: "positive or negative?"."""
    for sentence in reversed(said):
        which = re.match(
            r"(?:which|who|what|where|"
            r"when)\b[^,?]*, ",
            sentence,
            re.IGNORECASE,
        )  # "which is larger, 1 or 2?"
        found = _ALTERNATIVES.search(sentence, which.end() if which else 0)
        if found and (sentence.rstrip().endswith(("?", ":")) or sentence.lower().startswith("true or")):
            many = found["many"].split(", ") if found["many"] else [found["one"]]
            things = [*many, found["last"] or found["other"]]
            if not any(thing.lower() in _NO_ALTERNATIVES for thing in things):
                return {thing: thing for thing in things}
    return {}


# --- what an answer would look like

_HOW_MANY = re.compile(
    r"\bhow (?:many|much|old|tall|far|long|fast|high|heavy|deep|wide|large|big|likely)\b|\bwie ?viele?\b|"
    r"\bcombien\b|\bcuánt[oa]s?\b|"
    r"\bquant[oia]\b|\bwie (?:alt|hoch|lang|weit|groß|schnell)\b",
    re.IGNORECASE,
)
_MEASURES = (
    r"(?:total|sum|product|quotient|average|mean|median|mode|number|percent(?:age)?|probability|area|volume|perimeter|"
    r"circumference|price|cost|value|remainder|ratio|speed|distance|population|height|length|width|weight|age|amount|"
    r"balance|profit|revenue|discount|interest|tip|tax|salary|temperature|boiling point|melting point|freezing point|"
    r"square root|cube root|result|least|greatest|smallest (?:number|integer)|largest (?:number|integer)|derivative|"
    r"integral|determinant|slope|radius|diameter|hypotenuse|difference|score|rating|year|atomic number|hypotenuse|"
    r"fraction)"
)
_NUMBERS = re.compile(
    rf"\bwhat(?:'s|’s| is| was| will be| would be| are)? (?:the )?(?:\w+ ){{0,3}}?{_MEASURES}\b|"
    r"\bwhat(?:'s|’s| is)\s+[-\d(\\$√|]|\bwhat (?:percent|percentage|fraction|number|year|amount|size|age)\b|"
    r"\b(?:in|of) (?:what|which) year\b|^\W*(?:please )?(?:calculate|compute|evaluate|solve|find (?:the|x|y|all)|"
    r"determine the|"
    r"convert \S*\d|round|count|simplify|work out|add \d|subtract|multiply|divide|estimate|factor|differentiate|"
    r"integrate|"
    r"express|write \S*\d)|\b(?:rate|score)\b[^.?!]{0,60}\b(?:from|on|out of|scale|between|\d)|"
    r"\bquel (?:est le )?(?:nombre|prix|âge)|"
    r"\bin welchem jahr|\ben quelle année|\ben qué año|\bberechne|\bcalcule|\bcalcula\b|^\W*\S*\d[^a-z?]*=\s*\?|"
    r"[=]\s*\?",
    re.IGNORECASE,
)
_SCALE = re.compile(
    r"\b(?:from|of|scale|between|rate|score|rating|priority|severity)\b[^.?!\n]{0,60}?"
    r"\b[01] ?(?:\([^()]*\) ?)?(?:-|–|to|and|through) ?(\d+)\b|\([01] ?(?:-|–|to) ?(\d+)\)",
    re.IGNORECASE,
)
_YEARS = re.compile(
    r"\b(?:what|which) year\b|\bin welchem jahr|\ben quelle année|\ben qué año|\bin che anno|"
    r"\bem que ano",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"\b(?:what|which) time\b|\bwhat o'clock\b|\bum wie ?viel uhr|\bà quelle heure|\ba qué hora", re.IGNORECASE
)
_DATES = re.compile(
    r"\b(?:what|which) (?:date|day|month|weekday)\b|(?:^|[,:] )(?:and )?when\b|\bwann\b|\bquand\b|\bcuándo\b|"
    r"\bwhat is the (?:\w+ )?(?:date|deadline)"
    r"|\bat welchem tag",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"(?:^|[,:;] |\b(?:then|and|so) )\W*(?:is|are|was|were|does|do|did|can(?! you)|could(?! you)|will(?! you)|"
    r"would(?! you)|has|"
    r"have|had|may|might|must|am|isn't|aren't|doesn't|don't|didn't|can't|ist|sind|hat|haben|kann|können|darf|muss|"
    r"gibt es|"
    r"est-ce|est-il|est-elle|peut-on|es|está|son|puede|hay|é|è)\b[^?]*\?\W*$|"
    r"^(?:is|are|was|were|does|do|did|can(?! you)|has|have|may)\b[^.!]*$|\b(?:whether|determine if|check if|"
    r"tell me if)\b",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"\b(?:who|whose|whom|which|where)\b|\bwhat\b(?! (?:is|are|was|were|'s) (?:an? )?[\w-]+\W*$)|"
    r"^\W*(?:name|identify|extract|give me|tell me|state|detect|classify|label|categori[sz]e|guess|find|determine)\b|"
    r"\b(?:wer|welche[rsnm]?|wo|was ist die|wie heißt|qui|quel(?:le)?|où|quién|qué|cuál|dónde|chi|quale|dove)\b",
    re.IGNORECASE,
)


def _want(sentence: str) -> Want | None:
    """What an answer to a sentence would look like."""
    if _TIMES.search(sentence):
        return "time"
    if _YEARS.search(sentence):
        return "year"
    if _HOW_MANY.search(sentence) or _NUMBERS.search(sentence) or _SCALE.search(sentence):
        return "number"
    if _AUXILIARY.search(sentence) and not _ALTERNATIVES.search(sentence):
        return "verdict"
    if _DATES.search(sentence):
        return "date"
    return "name" if _NAMES.search(sentence) and (sentence.endswith(("?", ":", ".")) or len(sentence) < 200) else None


def _want_of(said: list[str]) -> Want | None:
    asked = [sentence for sentence in said if _kind(sentence) == "question"]
    wants = [_want(sentence) for sentence in asked]
    return next((want for want in reversed(wants) if want), "any" if asked else None)
