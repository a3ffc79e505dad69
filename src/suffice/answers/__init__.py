"""From a response to its answer: extract it, normalise it, and settle which answers are the same.

>>> from suffice.answers import answer_key
>>> answer_key("She sold 48 + 24 = 72 clips.")
'72'
"""

from suffice.answers import extract
from suffice.answers.extract import AskExtractor
from suffice.answers.extractor import (
    Evidence,
    Extractor,
    Kind,
    Read,
    TextExtractor,
    answer_key,
    extractor_names,
    get_extractor,
    register_extractor,
)
from suffice.answers.keys import Keys
from suffice.answers.reader import has_answer, wants_answer
from suffice.answers.structure import Structure, ToolExtractor
from suffice.normalise import normalise

__all__ = [
    "AskExtractor",
    "Evidence",
    "Extractor",
    "Keys",
    "Kind",
    "Read",
    "Structure",
    "TextExtractor",
    "ToolExtractor",
    "answer_key",
    "extract",
    "extractor_names",
    "get_extractor",
    "has_answer",
    "normalise",
    "register_extractor",
    "wants_answer",
]
