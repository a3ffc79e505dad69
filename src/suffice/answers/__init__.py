"""From a response to its answer: extract it, normalise it, and settle which answers are the same.

>>> from suffice.answers import answer_key
>>> answer_key("She sold 48 + 24 = 72 clips.")
'72'
"""

from suffice.answers import extract
from suffice.answers.evidence import Evidence, evidence
from suffice.answers.extractor import Extractor, Read, TextExtractor, extractor_names, get_extractor, register_extractor
from suffice.answers.keys import Keys, answer_key
from suffice.answers.normalise import normalise
from suffice.answers.requests import asks_for_one_answer
from suffice.answers.structure import Structure
from suffice.answers.tools import ToolExtractor

__all__ = [
    "Evidence",
    "Extractor",
    "Keys",
    "Read",
    "Structure",
    "TextExtractor",
    "ToolExtractor",
    "answer_key",
    "asks_for_one_answer",
    "evidence",
    "extract",
    "extractor_names",
    "get_extractor",
    "normalise",
    "register_extractor",
]
