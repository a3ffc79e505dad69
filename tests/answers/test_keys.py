"""From an answer as it was written to its key: what is the same, and what differs."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import pytest
from helpers.examples import at_least
from hypothesis import given
from hypothesis import strategies as st

from suffice.answers import Keys, get_extractor, normalise

SAME = [
    [
        "1/2",
        "0.5",
        r"\frac12",
        r"\dfrac{1}{2}",
        r"\frac{1}{2}",
        ".5",
        "0.50",
        r"$\frac{2}{4}$",
        r"\tfrac12",
        "½",
        "2/4",
    ],
    [r"-\frac{1}{2}", "-0.5", "-1/2", r"\frac{-1}{2}", r"\frac{1}{-2}", "−0.5", "- 0.5"],
    ["1,234", "1234", "1{,}234", r"1,\!234", r"1\,234", "1234.0", "1234.", "+1234", "$1,234$"],
    ["1,234,567.5", "1234567.5"],
    [
        "x = 5",
        "5",
        "x=5",
        "(5)",
        r"\boxed{5}",
        "5.",
        "**5**",
        "5.00",
        " 5 ",
        "`5`",
        '"5"',
        "f(x) = 5",
        r"\(5\)",
        r"\[5\]",
    ],
    ["(1, 2)", "(1,2)", r"\left(1,2\right)", "(1.0, 4/2)", "( 1 , 2 )", r"\big(1, 2\big)"],
    [r"\text{yes}", "Yes", "yes.", "YES", r"\textbf{Yes}", r"\mathrm{yes}", "**yes**"],
    ["90^\\circ", "90", r"90^{\circ}", "90°", "90 degrees", r"90^\circ.", r"90\degree"],
    [r"\{1,2\}", r"\{2, 1\}", r"\left\{1, 2\right\}", r"\lbrace 1,2\rbrace", r"\{2,1,1\}"],
    ["[1,2)", r"\left[1, 2\right)", r"x \in [1,2)"],
    ["(-\\infty, 3]", r"(-\infty,3]", r"\left(-\infty, 3\right]"],
    ["(3, \\infty)", r"(3,+\infty)", "(3, ∞)"],
    [r"1\frac{1}{2}", "1.5", "3/2", "1 1/2", r"\frac{3}{2}", "1½"],
    [r"3\times10^5", "300000", "3e5", r"3 \cdot 10^{5}", "300,000", r"3 \times 10^5"],
    [r"\$18", "18", "$18$", "18.00"],
    ["C", "(C)", r"\text{(C)}", "**C**", r"\text{C}", "C."],
    ["no", "No", "NO", r"\text{No}"],
    ["x^2+1", "x^{2}+1", "x² + 1", "x^2 + 1"],
    [r"\sqrt2", r"\sqrt{2}", r"\sqrt 2"],
    ["x \\leq 3", r"x\le3", "x ≤ 3"],
    ["5 cm", r"5\text{ cm}", r"5\,\text{cm}", r"5 \mathrm{cm}"],
    ["red and blue", "Red and  Blue", r"\text{red and blue}"],
    ["2\\pi", "2π", r"2 \pi"],
    ["10%", r"10\%", "10 %", "10.0%"],
    [r"\frac{\sqrt{3}}{2}", r"\dfrac{\sqrt{3}}{2}", r"\frac{\sqrt3}{2}"],
    ["1/3", r"\frac13", "2/6", r"\frac{1}{3}", r"0.\overline{3}"],
    ["0", "0.0", "-0", "0/5"],
    ["3¼%", "3.25%", r"3.25\%"],
    ["101₂", "101_2", "101_{2}"],
    ["x⁴", "x^4"],
    [r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"],
    [r"\theta = 30", "30", "AB = 30", r"\approx 30"],
    [r"x=1 \text{ or } x=2", "x = 1, x = 2", "x=1 and x=2"],
    [r"\emptyset", r"\varnothing", "∅", r"\{\}"],
    [r"0.1\overline{6}", "1/6"],
    [r"\frac34 cup", "3/4 cup", "0.75 cup"],
    ["50 percent", "50%", "50 per cent"],
    ["1.5 x 10^3", "1500", "1 500", "1.5 thousand"],
    ["5 million", "5000000", "5,000,000", "5e6"],
    ["2.5 billion", "2500000000"],
    [r"8\ 000", "8000"],
    ["'yes'", "yes", "yes\u200b"],
    ["don't", "don’t"],
    [r"\pm2", r"\pm 2", "\\pm 2.0"],
]

EQUAL = [
    [r"\sqrt{2}/2", r"\frac{\sqrt2}{2}", r"\frac{1}{\sqrt{2}}"],
    ["x^2-1", "(x-1)(x+1)", "-1+x^2"],
    ["2^3", "8"],
    ["2^{-1}", "0.5"],
    [r"\sqrt{12}", r"2\sqrt{3}"],
    ["x<5", "5>x"],
    [r"(1,\sqrt{4})", "(1,2)"],
    [r"\{1,\sqrt{4}\}", r"\{2,1\}"],
    [r"\frac{\pi}{2}", r"\frac12\pi", r"\pi/2"],
    [r"1+\sqrt{3}", r"\sqrt{3}+1"],
    ["2x+1", "y=2x+1", "1+2x"],
    ["3:4", "6:8"],
    ["10!", "3628800"],
    ["x(x+1)", "x^2+x"],
    [r"\frac{x}{2}", "0.5x", r"\frac{1}{2}x"],
    [r"\pm2", "-2,2", "2,-2"],
    ["5, 125", "125, 5"],
    ["2⁻³", "1/8"],
    ["10⁵", "100000"],
    [r"2\frac12\pi", r"2.5\pi"],
    ["50%", "50"],
    ["50%", "0.5"],
]

DIFFERENT = [
    ["0.333333", "1/3", "0.3333333333", "0.33"],
    ["(1,2)", "[1,2]", r"\{1,2\}", "(1,2]", "[1,2)", "(2,1)", "(3,1)"],
    ["(1,2,3)", "(1,2)", "(1,3,2)"],
    [r"\pi", "3.14159265", "3.14", "22/7", "3.141592653589793"],
    ["5", "-5", "50", "5.1", "0.5", "5 cm", "5 m"],
    ["1.0000000001", "1"],
    ["2A", "2a"],
    ["A", "B", "a"],
    ["abc", "cba"],
    ["x", "y"],
    ["yes", "no"],
    ["10%", "20%"],
    ["50", "0.5"],
    ["3:4", "0.75"],
    [r"\sqrt{2}", r"\sqrt{3}", "2", "1.41421356"],
    ["x<5", "x>5", "x<6", r"x\le5"],
    ["x^2", "x^3", "2x"],
    ["1,2", "12"],
    ["5, 125", "5125"],
    ["101_2", "101_{3}", "101", "1012"],
    ["10⁵", "105"],
    [r"2\frac12\pi", r"\pi"],
    ["2020-01-02", "2020-02-01", "2017"],
    ["555-1234", "-679"],
    ["3R2", "2R3"],
    ["7 tea", "7 eat"],
    ["3 kg m", "3 km g"],
    ["1/0", "2/0"],
    ["1,234", "(1,234)"],
    [r"10^{10^{10}}", r"10^{10^{11}}"],
    ["2^{10000}", "2^{10001}"],
    [r"\frac{1}{0}", r"\frac{2}{0}"],
    [r"(1,2)\cup(3,4)", r"(1,2)\cup(3,5)"],
]


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_spellings_of_one_answer_have_one_form(group: list[str]) -> None:
    assert len({normalise(text) for text in group}) == 1, [normalise(text) for text in group]


@pytest.mark.parametrize("group", EQUAL, ids=lambda group: group[0])
def test_equal_answers_join_the_key_that_was_first(group: list[str]) -> None:
    for order in (group, group[::-1]):
        keys = Keys()
        assert {keys.key(text) for text in order} == {normalise(order[0])}


@pytest.mark.parametrize("group", DIFFERENT, ids=lambda group: group[0])
def test_different_answers_have_different_keys(group: list[str]) -> None:
    for a, b in combinations(group, 2):
        keys = Keys()
        assert keys.key(a) != keys.key(b), (a, b)


def test_a_percent_sign_means_one_thing_in_a_question() -> None:
    for answers, found in {
        ("50", r"50\%", "0.5"): ["50", "50", "0.5"],
        (r"50\%", "0.5", "50"): ["50%", "50%", "50"],
        ("0.5", "50", r"50\%"): ["0.5", "50", "0.5"],
    }.items():
        assert list(map(Keys().key, answers)) == found


def test_looking_for_gold_adds_nothing() -> None:
    keys = Keys()
    keys.key(r"\sqrt{12}")
    assert keys.find(r"2\sqrt{3}") == r"\sqrt{12}"
    assert keys.find("7") == "7" and keys.find(None) is None
    assert keys.key("8") == "8"
    keys = Keys()
    keys.key("50%")
    assert (keys.find("0.5"), keys.find("50")) == ("50%", "50%")
    assert keys.key("50") == "50%", "what was only looked for has settled nothing"
    assert (keys.key("0.5"), keys.find("0.5")) == ("0.5", "0.5")


PIECES = [*r"0123456789.,/%^_{}()[]\ $*=-+<>aAbBxyz", r"\frac", r"\boxed{", "answer is "]


@at_least(300)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_has_a_key_or_none_and_keeps_it(text: str) -> None:
    form = normalise(text)
    assert form is None or (form and normalise(form) is not None)
    for name in ("auto", "boxed", "number", "choice", "line", "json:a"):
        found = get_extractor(name)(text)
        assert found is None or isinstance(found, str)
    keys = Keys()
    assert keys.key(text) == keys.key(text) == keys.find(text)


@given(st.fractions(max_denominator=10**6))
def test_numbers_keep_their_value(value: Fraction) -> None:
    form = normalise(str(value))
    assert form is not None and normalise(form) == form and Fraction(form) == value


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=6)


@given(DECIMALS, DECIMALS)
def test_decimals_are_compared_exactly(a: Decimal, b: Decimal) -> None:
    assert (normalise(f"{a:f}") == normalise(f"{b:f}")) == (a == b)


def test_a_key_is_found_without_comparing_where_there_is_no_formula_to_compute() -> None:
    def compared(keys: Keys, text: str | None) -> bool:
        return next(keys.finding(text), None) is not None

    keys = Keys()
    for text in (None, "7", "yes", r"\sqrt{12}"):
        assert not compared(Keys(), text), "there is nothing to compare it with"
    keys.key("8")
    assert not compared(keys, "7"), "numbers are compared as they stand"
    keys.key(r"\sqrt{12}")
    for text in (None, "8", "yes", r"\sqrt{12}", "x+1"):
        assert not compared(keys, text), text
    for text in (r"2\sqrt{3}", "2^3"):
        assert compared(keys, text), text
    assert not compared(Keys(exact=True), r"2\sqrt{3}")
