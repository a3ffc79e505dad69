"""From response text to what is found in it: the extractors, and hostile texts."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from suffice import OptionError, Pool, bundled_pools, load_pool
from suffice.answers import Keys, answer_key, get_extractor, register_extractor
from suffice.answers.keys import QUICK, FormulaComparison
from suffice.live.prompts import get_prompt, put

FOUND = {
    "boxed": {
        r"\boxed{42}": "42",
        r"so \boxed{\frac{1}{2}} it is": r"\frac{1}{2}",
        r"\boxed{1} then \boxed{2}": "2",
        r"\boxed{1} then \boxed{2": "1",
        r"\boxed{\{1, 2\}}": r"\{1, 2\}",
        r"\fbox{7}": "7",
        r"\boxed {9}, since 3*3 = 9": "9",
        r"\boxed{\text{a } \textbf{b}}": r"\text{a } \textbf{b}",
        r"\boxed{\boxed{5}}": r"\boxed{5}",
        "$$\\boxed{x^{2^{3}}}$$ text after": "x^{2^{3}}",
        r"\boxed{}": None,
        "no box": None,
        "boxed{3}": None,
        r"\boxed{3": None,
        "}}{{": None,
        "\\boxed{\n 5 \n}": "5",
    },
    "number": {
        "It is 42": "42",
        "It is 42.": "42",
        "#### 42": "42",
        "#### 42\nThat took 3 steps.": "42",
        "the answer is 1,234.50": "1,234.50",
        "The answer is 7. I checked 3 times.": "7",
        "The final answer is: -5": "-5",
        "12 apples and 30 pears": "30",
        "5-3": "3",
        "5 - 3 = 2": "2",
        "so x = -2": "-2",
        "it costs $18": "18",
        "it costs $1,000,000 in all": "1,000,000",
        "about 3.14": "3.14",
        "3/4 of it": "3/4",
        r"the answer is $\frac{3}{4}$": r"\frac{3}{4}",
        "50%": "50%",
        r"50\%": r"50\%",
        "−7": "-7",
        "1.5e3": "1.5e3",
        ".5": ".5",
        "To answer this takes 2 steps, then 8": "8",
        "The answer to all 3 questions is 12": "12",
        "The answer is 2 + 3 = 5.": "5",
        "Answer: 10 - 4 = 6": "6",
        "The answer is: 3 * 4 = 12 apples": "12",
        "The answer is 2^{10} = 1024": "1024",
        "The answer is 5 (x = 3, y = 2)": "5",
        "The answer is 12 because 3*5=15 is too many": "12",
        "The answer is 2 1/2": "2 1/2",
        "The answer is 5 × 10^3": "5 × 10^3",
        "The answer is 5 million": "5 million",
        "Answer:\n42": "42",
        "**Answer:** 42": "42",
        "none": None,
        "": None,
        "v2 of gpt4": None,
    },
    "choice": {
        "(C)": "C",
        "Answer: C": "C",
        "**C**": "C",
        r"\boxed{\text{C}}": "C",
        r"\boxed{C}": "C",
        "The answer is C.": "C",
        "The answer is (B) because A is wrong.": "B",
        "The correct option is D": "D",
        "(A) one, (B) two. So (A)": "A",
        "C": "C",
        "C.": "C",
        "**Answer: J**": "J",
        "**(E)**": "E",
        "I choose B": "B",
        "Final answer: **B**": "B",
        "The answer is (A). Note that option B would need more.": "A",
        "Option (A) is incorrect, as shown. Therefore, (C) is correct.": "C",
        "Option A is wrong. Option B is wrong. So it's C.": "C",
        "It must be (B), since (A) is impossible.": "B",
        "the answer must be D.": "D",
        "The answer is therefore D.": "D",
        "A is the answer.": "A",
        'The answer is "B".': "B",
        "**B. Paris**": "B",
        "B. Paris": "B",
        r"\boxed{\mathrm{C}}": "C",
        r"\boxed{\textbf{B}}": "B",
        r"\boxed{C. 42}": "C",
        r"The answer is $\text{C}$.": "C",
        "answer: b": "B",
        "Thus, the correct choice is (H).": "H",
        "I'd go with B here.": "B",
        "**B** beats (A)": "B",
        "I think A is a letter": None,
        "K": None,
        "A dog": None,
        "The answer is Apple": None,
        "": None,
    },
    "line": {"a\nb\n\n": "b", "only": "only", "\n \n": None, "": None, "x\r\n": "x"},
    "json:answer": {
        '{"answer": 42}': "42",
        '{"answer": "yes"}': "yes",
        'Sure! ```json\n{"answer": [1, 2]}\n``` done': "[1, 2]",
        '{"answer": 1} {"answer": 2}': "2",
        '{"answer": {"b": 1, "a": 2}}': '{"a": 2, "b": 1}',
        '{"answer": {"answer": 1}}': '{"answer": 1}',
        '[{"answer": 1}]': None,
        '{"answer": null}': None,
        '{"other": 1}': None,
        "no json": None,
        "{" * 5000: None,
        "[" * 5000: None,
        "{" * 300 + '{"answer": 5}': "5",
        '{"answer": 5}' + "[" * 300: "5",
    },
    "json:a.0.b": {'{"a": [{"b": true}]}': "true", '{"a": []}': None, '{"a": 3}': None},
    r"regex:Result: (\w+)": {"Result: one. Result: two.": "two", "result": None},
    "auto": {
        r"5 is \boxed{3}, not 7": "3",
        "There are 12.": "12",
        "(A) 12 (B) 15. I choose (B).": "B",
        "The answer is 12, not (B).": "12",
        "Answer: C": "C",
        "#### 8": "8",
        "The answer is (D): 5 apples": "D",
        "Answer: A total of 12 apples were sold.": "12",
        "Answer: I think it is 12": "12",
        r"The answer is $2\sqrt{3}$": r"2\sqrt{3}",
        r"The answer is $x = 7$.": "7",
        r"The answer is \(\frac{1}{2}\).": r"\frac{1}{2}",
        r"\boxed{(B) 12}": "B",
        "The answer is $18.": "18",
        "nothing": None,
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_extractors_find_what_is_there(name: str) -> None:
    extract = get_extractor(name)
    for text, found in FOUND[name].items():
        assert extract(text) == found, text[:80]


def boxed_answers_are_kept(pool: Pool) -> None:
    extractor = get_extractor("auto").for_request(put("How much is it?", get_prompt("paper")), asked=False)
    for question in pool.questions:
        for answer in question.labels:
            text = f"First we add 3 and 4.\n\nSo the total is \\boxed{{{answer}}}, as in step 2."
            if answer.count("{") == answer.count("}"):
                whole = get_extractor("boxed")(text) or ""
                assert extractor(text) in (whole, whole.rpartition("=")[2].strip()), "of an equation, its end"


@pytest.mark.parametrize("name", bundled_pools())
def test_boxed_answers_of_bundled_pools_are_kept(name: str) -> None:
    boxed_answers_are_kept(load_pool(name))


def test_boxed_answers_of_other_pools_are_kept(shared_pools: Path) -> None:
    for path in sorted(shared_pools.glob("*.jsonl")):
        boxed_answers_are_kept(load_pool(path))


HOSTILE = [
    r"10^{10^{10}}",
    "{" * 100_000,
    "(" * 100_000 + ")" * 100_000,
    "((((((((((" * 5 + "1" + "))))))))))" * 5,
    "9" * 100_000,
    r"\frac{" * 1000,
    r"\sqrt{" * 40 + "2" + "}" * 40,
    "1" + "e9" * 50,
    "1e999999999",
    "2^" * 100 + "2",
    "(9^{999})^{999}",
    "999999!",
    "((2!)!)!" * 10,
    "x" + "^{9999}" * 10,
    r"\int_0^\infty e^{-x^{x^x}}dx",
    r"\sum_{n=1}^{10^9} n",
    "\x00\ud800" * 100,
    "-" * 100_000,
    "1," * 50_000,
    "1/0",
    "The answer is" + "\n" * 800 + "5",
    "answer is " * 100_000,
    "#### " * 100_000,
    r"\boxed{" * 100_000 + "5" + "}" * 100_000,
    "*" * 100_000,
    "option A " * 20_000,
    "_" * 50_000 + "(A",
    "$" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers_cost_a_moment_and_hurt_nobody(text: str) -> None:
    FormulaComparison("x", "y", QUICK).begin().result()
    keys = Keys()
    keys.key(r"\frac{x}{3}")
    assert keys.key(text) == keys.key(text) is not None
    for name in ("auto", "boxed", "number", "choice", "line", "json:a"):
        get_extractor(name)(text)
        get_extractor(name)(rf"\boxed{{{text}}}")


def test_a_malicious_regular_expression_is_stopped() -> None:
    assert get_extractor("regex:^(a+)+$")("a" * 50 + "b") is None
    assert get_extractor(r"regex:(\d+)")("and then 5") == "5", "the next task finds a worker again"


@pytest.mark.parametrize(
    "wrong", ["nonsense", "tool:nonsense", "regex:", "regex:(", "regex:no group", "regex:(two)(groups)", "boxed:1"]
)
def test_a_wrong_extractor_is_refused(wrong: str) -> None:
    with pytest.raises(OptionError, match="tool:name" if wrong.startswith("tool") else "extractor"):
        get_extractor(wrong)


def test_extractors_can_be_registered() -> None:
    register_extractor("shout")(lambda text: text.upper())
    assert get_extractor("shout")("yes") == "YES"
    for taken in ("boxed", "regex", "No Name"):
        with pytest.raises(OptionError):
            register_extractor(taken)(lambda text: None)


def test_any_callable_extracts_also_one_that_cannot_be_hashed() -> None:
    @dataclass
    class Between:
        start: str

        def __call__(self, text: str) -> str | None:
            return text.partition(self.start)[2] or None

    assert answer_key("It is: 7", Between(": ")) == "7"
    assert answer_key("The colour is Red", lambda text: text.split()[-1]) == "red"
    assert not get_extractor(Between(": ")).quick, "it may take its time"


def test_threads_get_their_own_replies() -> None:
    extract = get_extractor(r"regex:(\d+)")
    texts = [f"{thread} and {turn}" for thread in range(6) for turn in range(40)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(extract, texts)) == [text.split()[-1] for text in texts]
