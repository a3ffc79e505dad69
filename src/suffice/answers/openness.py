"""What asks for an opinion, advice, an estimate or a list: questions in form to which no two good replies are the same.

Some do so whatever else is said ("what would you recommend"). Others do so only where nothing is given to answer from:
"how much does it cost" is an estimate, and after a price list a question like any other. What is best, and what one
should do, is a matter of judgement unless a document tells it; how much it takes, unless figures do.
"""

import re

_ALWAYS = re.compile(
    r"^\W*(?:(?:and|so|but|then|now|really|or|ok|what|else|next|after|that|it|this|why|how|more|anything)\W+)+$|"
    r"\bwhat (?:does|do|did)\b[^?]{1,60}\bmeans?\b|"
    r"\b(?:(?:do|would|can|could) you (?:\w+ )?(?:recommend|suggest|advise|think|prefer|explain|help|describe)|"
    r"any (?:\w+ )?(?:ideas|tips|advice|suggestions|thoughts|recommendations|experience)|what now\b|now what\b|"
    r"(?:your|some|need|give) (?:\w+ )?(?:thoughts|opinion|advice|view|take) (?:on|about)|what can (?:i|we) do|"
    r"what(?:['’]s| is) (?:happening|new|going on|up)\b|the weather|in the news|what do you|who would win|if you could)"
    r"|\b(?:what|which)\b[^?]{0,60}\bdo you (?:recommend|suggest|advise|think|prefer|like)\b"
    r"|\bwhat are (?:my|our) (?:\w+ )?(?:options|rights|chances|choices|possibilities|next steps)\b"
    r"|\bwhat should (?:i|we|my|our)\b|\btell me (?:what you|everything|all)\b|(?:plan|ideas|help|advice|thoughts)\?$",
    re.IGNORECASE,
)
_MATHS = r"(?:roots?|solutions?|zeros|coordinates|factors|values?|odds|dimensions|angles|numbers?|integers?|digits?)"
_JUDGED = (
    r"(?:good|best|better|great|nice|reasonable|ideal|cool|fun|worth|favou?rite|interesting|usual|typical|decent|safe|"
    r"fair(?! (?:coin|die|dice|six|game))|substitutes?|alternatives?|replacements?)"
)
_JUDGES = re.compile(
    rf"\b{_JUDGED}\b|\b(?:usually|typically|normally)\b|"
    r"\bshould\b|\b(?:could|might|may) (?:it|this|that|be)\b|\bdo (?:i|we) (?:need|have to)\b|"
    r"\bhow (?:likely|hard|difficult|easy|important|good|bad|safe|healthy)\b|"
    rf"^\W*(?:name|identify|find|determine|get|extract) (?:the |all |some |any )?(?:(?!of\b)[\w-]+ ){{0,2}}"
    rf"(?!{_MATHS}\b)[\w-]+[^s\W]s (?:in|of|for|from|to|that|about)\b|"
    r"^\W*(?:find|get|pick|choose|select|rate|evaluate|solve|guess) (?:me|my|our|us|a|an|some)\b"
    rf"(?! (?:\w+ )?{_MATHS}\b)|^\W*estimate (?!\S*\d|the (?:sum|value|product|square|quotient|difference|number))|"
    r"^\W*(?:are|do|did|have|will|would|can|could) (?:you|u)\b|\b(?:in the future|next year|some ?day)\b|"
    r"\b(?:right now|at the moment|currently trending)\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(
    r"\bhow (?:long|much|many|often)\b[^?]{0,40}\b(?:(?:does|do|will|would|did|might|can|could) (?:it|that|this|i|we|"
    r"you|one|people) \w+|(?:cost|charge|earn|make|spend)\b)|"
    r"^\W*[\w-]+(?: [\w-]+)? or [\w-]+(?: [\w-]+)?\W*$|(?<!if )\btoday\b|\b(?:tonight|tomorrow|latest)\b|"
    r"\bhow (?:much|expensive) (?:is|are) an? |\bhow long (?:do|does|can|will)\b[^?]{1,40}\b(?:last|keep|stay)\b|"
    rf"\bwhat(?:['’]re| are)\b(?! the (?:\w+ )?{_MATHS}\b)|"
    r"\b(?:what|which|who|where|how) (?:\w+ ){0,3}(?:do|would|are|did|have|can|will) you\b|^\W*will\b",
    re.IGNORECASE,
)
_KNOWN = re.compile(r"\W*(?:do you know|can you tell me|could you tell me|would you know)\b[ ,]*", re.IGNORECASE)


def is_open(sentence: str, *, figures: bool, material: bool) -> bool:
    """Whether what a sentence asks has no one answer, by what it is or by there being nothing to answer from.

    >>> ask = "How much does it cost to move?"
    >>> is_open(ask, figures=False, material=False), is_open(ask, figures=True, material=False)
    (True, False)
    """
    sentence = _KNOWN.sub("", sentence, count=1)
    if _ALWAYS.search(sentence):
        return True
    if material:
        return False
    return _JUDGES.search(sentence) is not None or (not figures and _GUESSES.search(sentence) is not None)


_QUERIES = re.compile(
    r"\b(?:re-?formulate|formulate|re-?phrase|re-?write|generate|suggest|write|create|produce|condense|convert|turn|"
    r"make|propose|predict)s?\b[^.\n]{0,120}\b(?:stand-?alone|search(?: engine)?|follow-?up|web|google) (?:search )?"
    r"(?:quer(?:y|ies)|questions?)\b|\bdo not answer (?:it|the question|the query)",
    re.IGNORECASE,
)
_COMPLETES = re.compile(
    r"\b(?:continue|complete|auto-?complete|finish|fill in|extend)s?\b[^.\n]{0,40}\b(?:text|sentence|code|message|"
    r"input|"
    r"prompt|story|paragraph)\b|\b(?:code|text|sentence) completion\b|\bonly (?:with|in|using) emojis?\b|"
    r"\b(?:next|first) (?:step|action|move)\b|\binto (?:\w+ )?(?:sub-?tasks|steps)\b|"
    r"\boutput only the (?:continuation|completion)|\b(?:re-?phrase|re-?write|re-?word)s? the (?:user['’]s )?\w+",
    re.IGNORECASE,
)
_STEPS = re.compile(r"^[ \t>*#-]*(thought|action|observation|plan)\b[^\n:]{0,20}:", re.IGNORECASE | re.MULTILINE)


def is_pipeline(asked: str, told: str) -> bool:
    """Whether a request is a step that makes text for others: the next action, a query to search for, a completion.

    >>> is_pipeline("Who is it?", "Thought: what to do\\nAction: the tool"), is_pipeline("Who is it?", "Be brief.")
    (True, False)
    """
    frame = f"{told}\n\n{asked}"
    acts = len({step.lower() for step in _STEPS.findall(frame)}) > 1
    return acts or bool(_QUERIES.search(told) or _COMPLETES.search(told) or _QUERIES.search(asked.partition("\n\n")[0]))
