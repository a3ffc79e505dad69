"""What a text says is its answer in a form that is easily known: a box, a number, a letter, a formula."""

import re


def boxed(text: str) -> str | None:
    r"""What is in the last balanced `\boxed{…}` or `\fbox{…}`."""
    found = None
    open_groups: list[int | None] = []
    for token in re.finditer(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", text, re.DOTALL):
        if token[0] == "{":
            open_groups.append(None)
        elif token[0].endswith("{") and len(token[0]) > 2:
            open_groups.append(token.end())
        elif token[0] == "}" and open_groups:
            start = open_groups.pop()
            if start is not None:
                found = (start, token.start())
    return (text[slice(*found)].strip() or None) if found else None


_TAIL = 20_000
"""Characters at the end of a text in which numbers and letters are looked for."""

_MOST_STATEMENTS = 50

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
NUMBER = re.compile(
    rf"(?:(?<![\w.)\]}}])[-−+] ?)?\\?\$?(?:\d+ ?)?(?:\\[dt]?frac\{{-?\d+\}}\{{\d+\}}|(?<![\w.]){_DIGITS}"
    rf"(?:[eE][-+]?\d+\b| ?(?:×|x|\*|\\times|\\cdot) ?10\^(?:\{{-?\d+\}}|-?\d+)| \d+/\d+(?!\.?\d)| ?/ ?\d+(?!\.?\d))?)"
    rf"(?: ?\\?%| (?:thousand|million|billion|percent)\b)?"
)
_SAYS = re.compile(r"answer\b[^.\n:=]{0,60}?(?:\bis\b|\bwas\b|\b(?:would|must|should) be\b|:|=)|####", re.IGNORECASE)
_MATHS = re.compile(r"[\s*:]*\$\$?([^$\n]{1,200})\$|[\s*:]*\\\(([^\n]{1,200}?)\\\)")
_ASIDE = re.compile(r", |; | \(|\. |\.$|\bbecause\b|\bsince\b|\bwhere\b|\bas\b", re.MULTILINE)


def _statements(text: str) -> list[tuple[int, str]]:
    """Where the text says what its answer is, last first, and the rest of the line there."""
    says = list(_SAYS.finditer(text))[-_MOST_STATEMENTS:]
    ends = [text.find("\n", say.end() + 1) for say in says]  # what is said may begin on the next line
    rests = [text[say.end() : (len(text) if end < 0 else end)][:200] for say, end in zip(says, ends, strict=True)]
    return [(say.start(), rest) for say, rest in zip(says, rests, strict=True)][::-1]


def said_number(text: str) -> tuple[bool, int, str] | None:
    """The number that the text gives as its answer: whether it says so, where, and what."""
    text = text[-_TAIL:]
    for start, rest in _statements(text):
        aside = _ASIDE.search(rest)
        said = rest[: aside.start()] if aside and NUMBER.search(rest[: aside.start()]) else rest
        number = NUMBER.search(said, said.rfind("=") + 1) or NUMBER.search(said)
        if number and ("=" in said or len(said[: number.start()].split()) <= 4):
            return True, start, plain_number(number[0])
    last = None
    for last in NUMBER.finditer(text):  # noqa: B007
        pass
    return (False, last.start(), plain_number(last[0])) if last else None


def said_formula(text: str) -> tuple[bool, int, str] | None:
    """The formula that the text says is its answer, where it stands between dollar signs."""
    for start, rest in _statements(text[-_TAIL:]):
        maths = _MATHS.match(rest)
        if maths:
            written = (maths[1] or maths[2]).rpartition("=")[2].strip()
            return (True, start, written) if written else None
    return None


def plain_number(number: str) -> str:
    """A number without the signs of money, its minus that of the keyboard."""
    return number.replace("−", "-").replace("\\$", "").replace("$", "").strip()


_LETTER = r"\(?([A-J])\b\)?(?!['’])"
_CHOICES = [
    # What says that it is the answer, what comes to a conclusion, and what only names a letter; each with the letter.
    re.compile(
        r"(?i:answer|choice|option)(?i: to [^.:]{1,60}?)?(?i: is| would be| must be| should be| was|:| =)+ ?"
        r"(?i:therefore |thus |indeed |clearly |option |choice )?[\"“']?" + _LETTER
        + r"|" + _LETTER + r"[\"”']?(?: is| was| must be)(?: therefore)? (?:the )?(?:correct|right|answer|best)"
        r"|(?i:answer ?: ?)([a-j])(?=[.\s]*$)"
    ),
    re.compile(
        r"(?i:choose|select|pick|go with|it is|it's|it’s|must be|should be|so|therefore,?|thus,?|hence,?|leaves|"
        r"leaving|leaves us with) "
        r"(?i:option |choice |answer )?" + _LETTER + r"|(?i:option|choice) " + _LETTER
    ),
    re.compile(r"\(([A-J])\)|(?:^|\n) ?([A-J])[.):] ?\S[^\n]*$|(?:^|\n) ?([A-J])[.)]? ?$"),
]  # fmt: skip
_DENIED = re.compile(
    r"[\s)]*(?:is|was|are|would be|can be|seems)? ?"
    r"(?:not|n't|incorrect|wrong|impossible|false|ruled|eliminated|would|can't|cannot)\b"
)
_BOXED_LETTER = re.compile(r"(?:\\(?:text|math)\w*\s*\{\s*)*\(?([A-J])\)?(?:$|[}.:)\s])")
_BOLD = re.compile(r"\*\*\(?([A-J])\)?(?:[.:)] ?[^*\n]{0,80})?\*\*")


def said_letter(text: str) -> tuple[bool, int, str] | None:
    """The letter that the text gives as its answer: whether it says so, where, and which."""
    text = text[-_TAIL:]
    inside = boxed(text)
    letter = _BOXED_LETTER.match(inside) if inside else None
    if letter:
        return True, len(text), letter[1]
    bold = list(_BOLD.finditer(text))
    plain = re.sub(r"\\(?:text|math)\w*\{([^{}]*)\}", r"\1", text)
    plain = re.sub(r"[ \t]+", " ", re.sub(r"[*_`$]+", "", plain)).strip()
    plain = re.sub(r"\s*\n\s*", "\n", plain)
    for rank, pattern in enumerate(_CHOICES):
        if rank == 2 and bold:
            return False, bold[-1].start(), bold[-1][1]
        for match in reversed(list(pattern.finditer(plain))):
            group = match.lastindex or 0
            if not _DENIED.match(plain, match.end()) and not _is_a_word(plain, match, group):
                return rank == 0, match.start(), match[group].upper()
    return None


def _is_a_word(text: str, match: re.Match[str], group: int) -> bool:
    """Whether the letter is an article or a pronoun: "Answer: A train …", "I think"."""
    bare = text[match.start(group) - 1 : match.start(group)] != "(" and match[group] in "AI"
    return bare and re.match(r" (?!is\b|because|since|as\b)[a-z0-9]", text[match.end(group) :][:12]) is not None
