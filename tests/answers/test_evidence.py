"""Clear evidence of an answer, by the corpus and by example: what starts a vote, what never does, what agrees."""

from collections.abc import Callable
from typing import Any

import pytest
from helpers.corpus import Kind, kinds
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.answers import Keys
from suffice.answers.evidence import clear_answer, evidence
from suffice.answers.requests import Question, Want, asks_for_one_answer, read_request

TEXTS, ANSWERS = list(kinds("texts")), list(kinds("answers"))


def _user(text: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def reader(messages: list[dict[str, Any]]) -> Callable[[str], str | None]:
    question = read_request(messages)
    return lambda text: clear_answer(text, question)


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(TEXTS) >= 18 and len(ANSWERS) >= 18
    assert all(len(kind.responses) >= 10 for kind in TEXTS + ANSWERS)
    for kind in ANSWERS:
        right = sum(answer == kind.answer for _, answer in kind.responses) / len(kind.responses)
        assert 0.6 <= right < 1, kind.name


@pytest.mark.parametrize("kind", TEXTS, ids=lambda kind: kind.name)
def test_what_has_no_answer_starts_no_vote(kind: Kind) -> None:
    question = read_request(kind.messages)
    assert question.has_one_answer is not True
    assert [text for text, _ in kind.responses if evidence(text, question).clear] == []


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.name)
def test_responses_that_say_the_same_agree(kind: Kind) -> None:
    assert asks_for_one_answer(kind.messages) is not False
    read, keys = reader(kind.messages), Keys()
    keys.key(kind.answer)
    for text, answer in kind.responses:
        assert keys.key(read(text)) == keys.key(answer), text


def test_the_words_of_the_question_are_no_part_of_a_name() -> None:
    read = reader(_user("What is the longest river in Africa?"))
    said = ["The Nile River", "Nile", "The longest river in Africa is the Nile.", "It's the **Nile**."]
    assert {read(text) for text in said} == {"Nile"}


SAYS = {
    "72": "72",
    "**72**": "72",
    "72 clips.": "72",
    "72: 48 plus 24": "72",
    "**72** clips (48 in April, 24 in May)": "72",
    "She sold 48 + 24 = 72 clips": "72",
    "She sold 72 clips in total.": "72",
    "The answer is 72 clips": "72",
    "So the total is **72**": "72",
    "#### 72": "72",
    "Final answer: 72": "72",
    "```\n72\n```": "72",
    "Die Antwort lautet 72.": "72",
    "Yes, under section 8.2 a pet is allowed.": "yes",
    "Ja, laut § 5 ist das erlaubt.": "yes",
    "Nein.": "no",
    "Positive": "positive",
    "Sentiment: Positive": "positive",
    "The sentiment is positive.": "positive",
    "The capital of France is Paris.": "paris",
    "`Paris`": "paris",
    "July 20, 1969": "1969-07-20",
    "20 July 1969.": "1969-07-20",
    "1:15 p.m.": "13:15",
    r"\boxed{\frac{1}{2}}": "0.5",
    "(C)": "C",
    "The answer is C because A is too small.": "C",
}


@pytest.mark.parametrize("text", SAYS)
def test_an_answer_is_read_from_the_text_alone(text: str) -> None:
    assert Keys().key(clear_answer(text)) == SAYS[text]


UNCLEAR = [
    "",
    "You're welcome!",
    "Yes, I'd be happy to help!",
    "I'm sorry, but I can't help with that. In an emergency, call 911.",
    "Could you tell me which of the 3 files you mean?",
    "I don't know.",
    "nothing",
    "Bring 2 tents, 3 lamps and a map. We meet at noon.\n\nThe way takes 4 hours, so start early.",
    "1. Open the lid\n2. Press start\n3. Wait 20 minutes",
    "| day | km |\n|---|---|\n| 1 | 20 |",
    "```python\nprint(6 * 7)\n```",
    "git reset --soft HEAD~1",
    '{"answer": 42}',
    '```json\n{"answer": 42}\n```',
]


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_is_no_clear_answer(text: str) -> None:
    assert clear_answer(text) is None


def test_weak_evidence_counts_only_where_a_vote_was_asked_for() -> None:
    found = evidence("The road was long, and after 3 days it began to snow. Nobody spoke.")
    assert (found.answer, found.clear, found.kind) == ("3", False, "weak")
    assert evidence("I can't help with that. Call 911.").answer is None, "not even there does a refusal vote"
    assert evidence('{"answer": 42}').kind == "structure"


def test_a_short_text_is_no_answer_where_the_request_asks_for_a_text() -> None:
    assert reader(_user("What was known as the Pontus?"))("The Black Sea") == "Black Sea"
    assert reader(_user("A title for my film about Odessa, please"))("The Black Sea") is None


ASKS = {
    True: [
        r"What is 7 times 8? Put your final answer in \boxed{}.",
        "Is 91 prime? Answer yes or no.",
        "What is 2+2? Reply with just the number.",
        "What colour is the sky? One word answer.",
        "Which is a mammal?\nA. Shark\nB. Whale\nC. Trout",
        "Choose the best option: A) red B) green C) blue",
        "Label the tweet with one of the following: joy, anger, fear.\n\nTweet: I'm so happy!",
        "Antworte nur mit Ja oder Nein: Ist Wasser nass?",
        "True or false: the Earth is flat.",
    ],
    False: [
        "can u write me a haiku about my cat",
        "Slogan for a gym",
        "thank you so much, that was very helpful",
        "hey, how's it going?",
        "Translate this to Spanish: Is it yes or no?",
        "TL;DR of the following:\n\nThe economy grew by 3 %.",
        "Why is the sky blue?",
        "How do I centre a div?",
        "What is machine learning?",
        "What's the difference between TCP and UDP?",
        "Fix this code:\n```python\nprint(1\n```",
        "sql query for second highest salary",
        "What should I name my cat?",
        "Is React better than Vue?",
        "Schreibe eine E-Mail an meinen Chef",
        "Écris un poème sur la pluie",
        "¿Cómo se hace una tortilla?",
        "how long does it take to learn the piano?",
        "what are my rights if my train is late?",
        "at what age should a child learn to swim?",
        "Find me a good hotel in Porto for 4 people",
        "Mi consigli un film per stasera?",
        "你能帮我写一封邮件吗？",
    ],
    None: [
        "",
        "And of Spain?",
        "How many legs does a spider have?",
        "Write 0.75 as a fraction.",
        "Simplify 6/8",
        "Is the following email spam?\n\nWrite me back to claim your prize!",
        "Is 17 prime? Explain.",
        "I bought 3 apples for $2 each. What did I pay in total?",
        "Was ist die Hauptstadt von Peru?",
        "A ticket costs $12. How much does it cost to go 3 times?",
        "boiling point of ethanol",
        "法国的首都是哪里？",
    ],
}


@pytest.mark.parametrize(("one", "text"), [(one, text) for one, texts in ASKS.items() for text in texts])
def test_a_request_tells_whether_it_has_one_answer(one: bool | None, text: str) -> None:
    assert asks_for_one_answer(_user(text)) is one
    assert asks_for_one_answer(_user([{"type": "image_url"}, {"type": "text", "text": text}])) is one


def test_where_nothing_is_asked_only_a_final_answer_is_clear() -> None:
    read = reader(_user("The quarterly figures are in."))
    assert [read(text) for text in ("12", "Great news", "Answer: 12", "It rose by 3, so 12 in total.")] == [None] * 4
    assert read("Final answer: 12") == "12" and read(r"\boxed{12}") == "12"


def test_the_system_may_say_in_which_form() -> None:
    system = {"role": "system", "content": "You sort tickets. Output only the label: bug, feature or question."}
    assert asks_for_one_answer([system, *_user("The page shows error 500.")]) is True
    assert asks_for_one_answer([system, *_user("Write a poem.")]) is None, "it may be what is to be sorted"
    conditional = {"role": "system", "content": "If you are asked for a letter, answer with the letter only."}
    assert asks_for_one_answer([conditional, *_user("Write a poem.")]) is False


def test_documents_before_a_question_do_not_change_it() -> None:
    document = "Write to us. Explain your case. Is it urgent? Answer yes or no. We list 3 offices. " * 2000
    question = read_request(_user(f"Context:\n{document}\n\nWho founded Acme Corp?"))
    assert (question.has_one_answer, question.want) == (None, "name")


@pytest.mark.parametrize("broken", [[], [{}], [{"role": "user"}], _user(None), _user([{"type": "text"}, 3]), _user(5)])
def test_a_request_without_text_asks_for_nothing(broken: list[Any]) -> None:
    assert asks_for_one_answer(broken) is None


WANTS: tuple[Want, ...] = ("any", "number", "name", "verdict", "letter")
LONG = [
    "a, ",
    "is it ",
    ", ",
    "\n",
    "**a** ",
    "A) x ",
    "one of: ",
    "can you please help me to ",
    "9",
    "= ",
    "- ",
    '"a',
    "or ",
    "a-",
    "1-",
    "_{1}",
    "| a |\n",
    "は",
    "was by Aa ",
    "thought: a\n",
]


@pytest.mark.parametrize("piece", LONG)
def test_long_texts_are_read_to_their_end(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    asked = read_request([{"role": "system", "content": text}, *_user(text)])
    assert asked.has_one_answer in (None, True, False)
    for want in WANTS:
        found = evidence(text, Question(want=want, options={"A": "x", "B": "y"} if want == "letter" else None))
        assert found.answer is None or len(found.answer) <= 20_000


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.sampled_from(["How many?", "Is it so?", "Who?", "When?", "A) x\nB) y", "hi"]))
def test_any_text_gives_an_answer_or_none(text: str, request: str) -> None:
    found = evidence(text, read_request(_user(request)))
    assert found.answer is None or found.answer
    assert not found.clear or found.answer
    assert evidence(text, read_request(_user(text))) is not None
