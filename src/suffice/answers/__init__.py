"""From a response to its answer: extract it, normalise it, and settle which answers are the same."""

from suffice.answers import extract
from suffice.answers.extractor import Extractor, Read, TextExtractor, extractor_names, get_extractor, register_extractor
from suffice.answers.keys import Keys, answer_key
from suffice.answers.normalise import normalise
from suffice.answers.tools import ToolExtractor

__all__ = [
    "Extractor",
    "Keys",
    "Read",
    "TextExtractor",
    "ToolExtractor",
    "answer_key",
    "extract",
    "extractor_names",
    "get_extractor",
    "normalise",
    "register_extractor",
]
