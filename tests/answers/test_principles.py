"""What is an answer, principle by principle: through the seam, with the request and the response alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.answers import Keys, get_extractor, has_answer, wants_answer
from suffice.answers.reader import shown_answer
from suffice.response import Response


def asked(text: Any, system: str = "") -> list[dict[str, Any]]:
    told = [{"role": "system", "content": system}] if system else []
    return [*told, {"role": "user", "content": text}]


def read(request: list[dict[str, Any]], *responses: str) -> list[str | None]:
    """What responses answer, as keys; nothing where the request is passed on."""
    keys = Keys()
    found = [None if wants_answer(request) is False else has_answer(request, one) for one in responses]
    return [keys.key(one.answer) if one else None for one in found]


JUDGE = (
    'Rate the response on a scale of 1 to 10 by strictly following this format: "[[rating]]", as in "Rating: [[5]]".'
)
ONE_WORD = 'Rate the response by strictly following this format: "[[rating]]".'

SLOTS: dict[str, tuple[list[dict[str, Any]], dict[str, str | None]]] = {
    "double brackets": (asked(JUDGE), {"It is good. [[8]]": "8", "The [[rating]] is mine: [[7]]": "7"}),
    "a placeholder alone": (asked(ONE_WORD), {"[[rating]]": None, "[[9]]": "9"}),
    "tags": (asked("Note: correct, wrong. Put it in <grade> tags."), {"Ok.\n<grade>correct</grade>": "correct"}),
    "tags in French": (asked("Mets ta note entre <note> et </note>."), {"Bien.\n<note>14</note>": "14"}),
    "a quoted label": (
        asked('Which is it? Think. End with "Answer: <letter>".'),
        {"A is false.\n\n**Answer:** C": "C"},
    ),
    "a German label": (
        asked("Wie viel? Denke nach und schließe mit „Antwort: X“ oder `Antwort: X`."),
        {"Also.\nAntwort: 12": "12"},
    ),
    "a Chinese label": (asked("多少？最后一行写“答案：X”。"), {"先算。\n答案：42": "42"}),
    "loud": (asked("Is it safe? Finish with a line VERDICT=PASS or VERDICT=FAIL."), {"Fine.\nVERDICT=PASS": "pass"}),
    "FINAL": (asked("What is 6*7? Write FINAL: <number>"), {"6*7 = 42\nFINAL: 42": "42"}),
    "hashes": (asked("How many? Solve it and give the result after ####."), {"3+4=7\n#### 7": "7"}),
    "a box": (asked(r"How many? Put it in \boxed{}."), {r"So \boxed{\frac12}": "0.5"}),
    "choices to fill in": (
        asked("Is 97 prime? Finish with VERDICT: <prime|composite>"),
        {"So.\nVERDICT: prime": "prime", "So.\nVERDICT: <prime>": "prime"},
    ),
    "loud with a placeholder": (asked("Which tool? Reply as TOOL=<name>"), {"TOOL=search": "search"}),
    "fenced format": (asked("How good is it? Reply like this:\n```\nSCORE: <0-100>\n```"), {"SCORE: 80": "80"}),
}


@pytest.mark.parametrize("name", SLOTS)
def test_the_request_names_the_place(name: str) -> None:
    request, said = SLOTS[name]
    assert wants_answer(request) is True
    assert dict(zip(said, read(request, *said), strict=True)) == said
    kinds = {one.kind for text in said if (one := has_answer(request, text))}
    assert kinds <= {"slot", "boxed"}


TICKETS = "Ordne die Nachricht einer Kategorie zu: Rechnung, Technik, Versand. Antworte nur mit der Kategorie."
OPTIONS: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "German labels": (asked("Mein Paket fehlt.", TICKETS), {"Versand": "versand", "**Technik**": "technik"}),
    "Spanish labels": (
        asked("Clasifica el comentario como positivo, negativo o neutro: Me encanta."),
        {"positivo": "positivo", "El comentario es **positivo**.": "positivo", "Negativo.": "negativo"},
    ),
    "Chinese labels": (
        asked("判断这条评论的情感，只回答“正面”、“负面”或“中性”：很好用"),
        {"正面": "正面", "负面。": "负面"},
    ),
    "letters": (
        asked("Which planet has the most moons?\nA) Earth\nB) Saturn\nC) Mars"),
        {"B": "B", "It is Saturn, so **B**.": "B", "Saturn": "B", "C) Mars": "C"},
    ),
    "letters of Hindi": (
        asked("सूर्य के सबसे निकट कौन सा ग्रह है?\n(क) शुक्र\n(ख) बुध\n(ग) मंगल"),
        {"(ख) बुध": "ख", "बुध सूर्य के सबसे निकट है।": "ख", "उत्तर: (क) शुक्र": "क"},
    ),
    "a Korean verdict": (asked("'예' 또는 '아니요'로만 답하세요. 고래는 알을 낳는다."), {"아니요": "no", "예.": "yes"}),
    "yes and no": (asked("Ist 91 eine Primzahl? Antworte mit Ja oder Nein."), {"Nein.": "no", "Ja, denn …": "yes"}),
    "a Japanese verdict": (
        asked("91は素数ですか？「はい」か「いいえ」で答えてください。"),
        {"いいえ": "no", "はい。": "yes"},
    ),
    "in JSON": (
        asked("x", 'Categories: billing, technical, other. Answer in JSON: {"category": "..."}'),
        {'{"category": "billing"}': "billing", "billing": "billing"},
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_closed_set_is_in_the_request(name: str) -> None:
    request, said = OPTIONS[name]
    assert dict(zip(said, read(request, *said), strict=True)) == said
    assert wants_answer(request) is True


def test_what_was_taught_is_read_whole_where_it_is_short() -> None:
    final = get_extractor("final")
    assert final("`4 True`") == final("4 True") != final("4 False")
    assert final("**Qh7#**") == final("Qh7#") != final("Qh5")
    assert (final("O(log n)"), final("O(n)"), final("2^10"), final("Am 13. Juni 2025.")) == (
        "O(log n)",
        "O(n)",
        "2^10",
        "Am 13. Juni 2025",
    )
    assert final("I think that it may well be Danish, or else one of its neighbours.") is None
    assert final("What do you mean?") is None


def test_several_letters_are_an_order() -> None:
    order = asked("Which came first? Only the letters, in order.\nA) Rome\nB) Troy\nC) Paris")
    assert read(order, "B, A, C", "**B - A - C**", "A, B, C") == ["B,A,C", "B,A,C", "A,B,C"]


def test_who_asks_for_a_few_tokens_or_one_word_only_asks_for_an_answer() -> None:
    code = asked("Ons het gister gaan stap.", "Identify the language. Reply with the ISO code only.")
    assert wants_answer(code) is None and read(code, "af", "`af`", "nl") == ["af", "af", "nl"]
    brief = get_extractor("auto").for_request(asked("Which language is this?"), asked=False, most_tokens=3)
    assert (found := brief.evidence(Response("nl", finish_reason="length"))) and found.answer == "nl"


def test_a_tag_that_is_spoken_of_is_no_place_until_it_is_filled() -> None:
    for text in ("How do I centre a <div>?", "What is {{date}} in Jinja?", "Which is faster, vector<T> or list<T>?"):
        assert wants_answer(asked(text)) is not True
    told = asked("<context>It grew by 4 %.</context>\n\nQuestion: Did it grow?")
    assert wants_answer(told) is False
    sources = asked("Tell me of Rome.", 'End with a line "Sources: ..."')
    assert not has_answer(sources, "Rome was not built in a day. " * 9 + "\nSources: Livy")


FORMS = {
    "a step of an agent": asked("Who is mayor?", "Thought: what you think\nAction: search[...]\nObservation: ..."),
    "sources beside an answer": asked("Who?", "Reply in this format:\nAnswer: <answer>\nSources: <numbers>"),
    "an edit": asked("Fix it.", "Answer with blocks:\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_no_answer(name: str) -> None:
    assert wants_answer(FORMS[name]) is False
    for text in ("Action: search[mayor]", "Answer: Ann\nSources: p2", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE"):
        assert has_answer(FORMS[name], text) is None


def test_an_object_that_is_mostly_text_is_no_answer() -> None:
    auto = get_extractor("auto").for_request(asked("Do it.", 'Reply as JSON: {"note": "..."}'), asked=False)
    step = '{"thought": "I should search for cat litter first", "action": "type", "target": "[3]", "text": ""}'
    assert not auto.for_scout(Response(step))
    assert not auto.for_scout(Response('{"queries": ["heat pump grant Ireland 2025", "heat pump with solar panels"]}'))
    assert not auto.for_scout(Response('{"reason": "It says so in the second paragraph.", "faithfulness": 2}'))
    assert auto.for_scout(Response('{"reason": "It says so in the second paragraph.", "score": 2}'))
    assert auto.for_scout(Response('{"a": 1, "b": true, "faithfulness": 2}'))


def test_a_label_that_is_denied_is_not_chosen() -> None:
    hot = asked('Is it "hot" or "cold"? Say only which.')
    assert read(hot, "hot", "not hot", "It is cold, not hot.") == ["hot", None, "cold"]
    spam = asked('Is dit "spam" of "geen spam"? Antwoord met een van beide. Win nu!')
    assert read(spam, "Dit is spam.", "geen spam", "Dit is geen spam.") == ["spam", "geen spam", "geen spam"]


def test_json_with_choices_in_it_is_no_slot() -> None:
    request = asked('Quel fleuve ?\nA. La Loire\nB. Le Rhône\n\nRéponds en JSON : {"choix": "A|B"}')
    auto = get_extractor("auto").for_request(request, asked=False)
    voting = auto.for_scout(Response('{"choix": "B"}'))
    assert voting and voting.structure and voting.structure.value(Response('{"choix": "A"}')) == {"choix": "A"}


CONCLUSIONS = {
    "A pump fills 240 litres, half at once; the rest at 0.15 a minute. How many minutes does that take?": {
        "Half of 240 is 120 litres; 120 / 0.15 = 800 minutes.": "800"
    },
    "8 of 55 are defective. How many are good?": {"47 are good.": "47", "55 − 8 = 47": "47"},
    "whats 17*23": {"17*23 = 391": "391", "391": "391"},
    "小明有50元，花了8元，还剩多少元？": {"小明还剩下 42元": "42", "50 − 8 = 42，所以还剩42元。": "42"},
    "민수는 사과 12개 중 5개를 먹었습니다. 몇 개가 남았나요?": {"민수에게는 사과 7개가 남았습니다.": "7"},
    "राम के पास 12 आम थे, उसने 5 खाए। कितने आम बचे?": {"राम के पास ७ आम बचे।": "7"},
    "لدى أحمد 12 كتابا وأعطى 5 منها. كم كتابا بقي لديه؟": {"بقي لديه ٧ كتب.": "7"},
}


@pytest.mark.parametrize("question", CONCLUSIONS)
def test_a_response_answers_at_its_end_where_the_request_leads_to_a_value(question: str) -> None:
    said = CONCLUSIONS[question]
    assert dict(zip(said, read(asked(question), *said), strict=True)) == said
    assert wants_answer(asked(question)) is None, "its first response is looked at"


PIECES = {
    ("Queues: billing, shipping, returns. Give the queue.", "My parcel is late."): {
        "**Shipping**": "shipping",
        "late": "late",
    },
    ("", "Rechnung 4711, Auftrag A-93. Welche Nummer hat der Auftrag?"): {"A-93": "A-93", "Auftrag: A-93": "A-93"},
    ("", "物流、质量、价格：这条评论说的是哪一类？“太贵了”"): {"价格。": "价格"},
    ("", "كم سعر الكتاب بعد الخصم؟"): {"45": "45"},
    ("", "Ann, Ben or Cleo: who is on call on Monday?"): {"It is **Cleo**.": "Cleo"},
}
MADE_UP = {
    ("", "Ann, Ben or Cleo: who is on call on Monday?"): [
        "That depends on who of Ann, Ben and Cleo was on call last.",
        "Ann!",
        "Which Monday do you mean?",
        "**Note:** it is Ann's turn, and then Ben's.",
    ],
    ("", "A name for my cat"): ["Luna", "My cat Luna", "Cat: Luna"],
    ("Write a title of the chat.", "How do I prune roses?"): ["Pruning roses", "Title: Pruning roses"],
    ("", "Invent a puzzle on trains"): ["A train goes 60 km in an hour. How far in two?\nAnswer: 120 km"],
}


@pytest.mark.parametrize("request_", PIECES, ids=lambda one: one[1][:20])
def test_a_response_that_is_a_piece_of_the_request_or_a_figure_shows_an_answer(request_: tuple[str, str]) -> None:
    for text, answer in PIECES[request_].items():
        found = shown_answer(asked(request_[1], request_[0]), text)
        assert found and found.answer.casefold() == answer.casefold()


@pytest.mark.parametrize("request_", MADE_UP, ids=lambda one: one[1][:20])
def test_a_response_that_says_more_or_makes_something_up_shows_none(request_: tuple[str, str]) -> None:
    for text in MADE_UP[request_]:
        assert shown_answer(asked(request_[1], request_[0]), text) is None, text


NOTHING = {
    ("Return only SQL, no explanation.", "the top 5 customers"): [
        "```sql\nSELECT 1\n```",
        "```sql\nSELECT name\nFROM x\n```",
    ],
    ("", "Who was Ada Lovelace and why does she matter?"): ["Ada Lovelace wrote the first program. She saw further."],
    ("", "Write a haiku about rain."): ["Soft rain", "Answer: 42"],
    ("", "Schreib mir einen Slogan für mein Café."): ["Kaffee mit Herz"],
    ("", "Traduis en anglais : « Il fait beau »"): ["The weather is nice"],
    ("", "写一个关于猫的标题"): ["猫的一天"],
    ("", "thanks!"): ["You're welcome!"],
    ("", "Короткий тост коллеге на 50 лет. 2-3 предложения"): ["За тебя и твои 50!"],
    ("You are a terminal copilot. Output a single bash command, no explanation.", "the ten biggest files"): [
        "du -ah /var/log | sort -rh | head -n 10"
    ],
    ("", "React or Vue for a solo developer who builds a dashboard? Just pick one and tell me why"): [
        "Vue. It is easy."
    ],
}


@pytest.mark.parametrize("request_", NOTHING, ids=lambda one: one[1][:20])
def test_what_asks_for_a_text_has_no_answer(request_: tuple[str, str]) -> None:
    system, user = request_
    assert wants_answer(asked(user, system)) is False
    assert read(asked(user, system), *NOTHING[request_]) == [None] * len(NOTHING[request_])


def test_the_client_may_cut_a_response_itself() -> None:
    guard = asked("Is this message safe or unsafe? Answer with one word.\n\nHow are you?")
    cut = Response("safe", finish_reason="length")
    for name in ("auto", "line"):
        extractor = get_extractor(name)
        assert extractor.for_request(guard, asked=False, most_tokens=1).extract(cut) == "safe"
        assert extractor.for_request(guard, asked=False, most_tokens=400).extract(cut) is None


def test_what_is_cut_before_its_box_has_no_answer() -> None:
    messages = [{"role": "user", "content": r"What is 1+1? Put the answer in \boxed{}."}]
    known = get_extractor("auto").for_request(messages, most_tokens=5)
    assert known.extract(Response("1+1=", finish_reason="length")) is None


@pytest.mark.parametrize("broken", [[], [{}], [{"role": "user"}], asked(None), asked([{"type": "text"}, 3]), asked(5)])
def test_a_request_without_text_asks_for_nothing(broken: list[Any]) -> None:
    assert wants_answer(broken) is False


LONG = ["a, ", "is it ", "\n", " ", "**a** ", "A) x ", "one of: ", "9", "= ", "- ", '"a', "or ", "1-", "| a |\n", "は",
        "(", "[[", "<a>", "$", "`", "Answer: ", "_", "answer is ", "#"]  # fmt: skip
ASKED = ["How many?", "Is it so?", "Who?", "A) x\nB) y?", 'End with "Answer: X"', "Say yes or no, as [[a]] or [[b]].",
         "hi"]  # fmt: skip


@pytest.mark.parametrize("piece", LONG)
def test_long_texts_are_read_to_their_end(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    request = asked(text, text)
    assert wants_answer(request) in (None, True, False)
    for one in (request, *map(asked, ASKED)):
        found = has_answer(one, text)
        assert found is None or len(found.answer) <= 20_000


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80), st.sampled_from(ASKED))
def test_any_text_gives_an_answer_or_none(text: str, question: str) -> None:
    found = has_answer(asked(question), text)
    assert found is None or found.answer
    has_answer(asked(text), text)
