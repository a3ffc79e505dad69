"""From response text to answer: extract it, normalise it, and settle which answers are the same."""

from suffice.answers.extract import Extractor, extractor_names, get_extractor, is_quick, register_extractor
from suffice.answers.keys import Keys, answer_key
from suffice.answers.normalise import normalise
from suffice.answers.tools import ToolExtractor, tool_extractor

__all__ = [
    "Extractor",
    "Keys",
    "ToolExtractor",
    "answer_key",
    "extractor_names",
    "get_extractor",
    "is_quick",
    "normalise",
    "register_extractor",
    "tool_extractor",
]
