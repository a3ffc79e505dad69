"""Requests in languages other than English: what asks for a text, and what for a number, a name or a verdict.

Little is known of each, so a question counts as one only by its question word, and of a request in another script
nothing counts but that. What asks to explain, recommend, tell or write is known by the stems of its verbs.
"""

import re
from typing import Literal

_LATIN_TEXT = re.compile(
    r"\b(?:explic|expliqu|explíc|erklär|spieg[ah]|beschreib|descri[bv]|décri|recomi?end|recommand|empfehl|empfiehl|"
    r"consigli|conseil|aconsej|suger|suggér|vorschl|schlag|raccont|cuent[ae]|cuént|erzähl|racont|traduc|tradui|traduz|"
    r"übersetz|resum[aei]|résum|zusammenfass|riassum|escrib|écri|schreib|scriv|escrev|helf|hilf|aide[rz]?\b|ayud|aiut|"
    r"ajud|hältst|denkst|meinst|findest|magst|piensas|opinas|penses|pensi\b|pens[ae] de|acha\b|kannst du|könntest|"
    r"können sie|puedes|podrías|peux-tu|pouvez-vous|puoi|potresti|pode\b|poderia|warum|wieso|pourquoi|por qué|perché|"
    r"por que\b|wie (?:kann|soll|macht|geht|funktioniert)|cómo|comment\b|come (?:si|posso)|soll(?:te)? ich|"
    r"debería|dovrei|devrais|deveria|préfèr|prefier|bevorzug|aimes|gustar?|lieber|tipps|consejos|ideen|ideas)\w*",
    re.IGNORECASE,
)
_OTHER_TEXT = re.compile(
    r"おすすめ|お勧め|教えて|書いて|説明|どう思|どうすれば|どうやって|なぜ|作って|手伝|翻訳|要約|推荐|建议|帮我|帮忙|写一|"
    r"介绍|解释|说明|翻译|总结|怎么|如何|为什么|好玩|你觉得|你能|추천|알려|설명|써 ?줘|번역|요약|어떻게|왜|도와|"
    r"посовет|порекоменд|расскаж|объясн|напиш|переведи|помоги|почему|как (?:мне|можно|сделать)|думаешь|опиши|"
    r"اشرح|اكتب|ترجم|انصح|لماذا|كيف|समझा|लिख|बता|सुझा|क्यों|कैसे"
)
_NUMBER = re.compile(
    r"何(?:人|個|本|枚|日|年|時間|歳|回|円|度|キロ|メートル)|いくつ|いくら|何になり|多少|几(?:个|天|年|岁|次|人|只)|몇|얼마|"
    r"сколько|كم\b|कितन|は？$|[=＝]\s*[?？]?$",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"どこ|誰|だれ|どれ|どの|何という|何ですか|いつ|哪|谁|什么|何时|어디|누구|무엇|언제|\b(?:кто|где|когда|какой|какая|"
    r"какое|как называется|чей)\b|أين|من هو|متى|ما هي|ما هو|कौन|कहाँ|कब|क्या है",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"(?:です|ます|でしょう)か[?？。]?\s*$|吗[?？]?\s*$|(?:인가요|입니까|나요)[?？]?\s*$|\bли\b|\bهل\b|^क्या\b"
)
_ENGLISH = re.compile(
    r"\b(?:the|is|are|what|which|who|how|of|to|and|in|it|this|for|my|you|does|do|with|on|was|when|where|i|or|an|can|"
    r"not|at|by|from|there|has|have|if|be)\b",
    re.IGNORECASE,
)
_NOT_LATIN = re.compile(r"[\u0370-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def is_other_script(text: str) -> bool:
    """Whether most of a text is in letters other than the Latin ones.

    >>> is_other_script("日本の首都はどこですか？"), is_other_script("What does 猫 mean?")
    (True, False)
    """
    letters = sum(character.isalpha() for character in text)
    return 2 * len(_NOT_LATIN.findall(text)) > letters > 0


def wants_text(sentence: str) -> bool:
    """Whether a sentence that is not English asks for a text."""
    if _OTHER_TEXT.search(sentence):
        return True
    return _LATIN_TEXT.search(sentence) is not None and len(_ENGLISH.findall(sentence)) < 2


def want(sentence: str) -> Literal["number", "name", "verdict"] | None:
    """What an answer to a sentence in another script would look like, by its question word."""
    if _NUMBER.search(sentence):
        return "number"
    if _NAME.search(sentence):
        return "name"
    return "verdict" if _VERDICT.search(sentence) else None


_MOST_WORDS = 3


def is_english(text: str) -> bool:
    """Whether a text has the small words of English, or is too short to tell."""
    return len(text.split()) <= _MOST_WORDS or _ENGLISH.search(text) is not None


_SAYS = re.compile(
    r"(?:.*(?:は|是|等于|为|＝|=|[—–-] (?:это )?)\s*)?"
    r"(?P<said>[^。！？!?、，,]{1,20}?)\s*"
    r"(?:です|だ|になります|입니다|이다)?[。.！!]*"
)
_LONGEST = 60


def said(text: str) -> str | None:
    """What a short sentence in another script says of its subject.

    >>> said("日本の首都は東京です。"), said("12乘以8等于96。"), said("京都いいですね！定番なら嵐山がおすすめです。")
    ('東京', '96', None)
    """
    found = _SAYS.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    return found["said"] if found and len(found["said"]) <= (20 if found["said"].isascii() else 10) else None
