"""The pictures: in colours of their own, and for light and dark pages."""

import re
from itertools import combinations, pairwise
from math import dist
from pathlib import Path

from pictures import draw_headline, draw_methods

from suffice.experiments.scaling import by_axes, curves_plot
from suffice.report.figures import draw_plots
from suffice.report.style import LOOKS, looks


def test_no_two_look_alike() -> None:
    names = ["sc", "asc", "esc", "rl", "plan", "boinf", "rl:penalty_draw=0.1", "file:mine", "file:yours"]
    assert len(set(looks(names))) == len(names)
    assert looks(["plan, at its stop"]) == [LOOKS["plan"]]
    assert len(looks([f"file:{number}" for number in range(50)])) == 50


def test_pictures_have_an_svg_beside_them_with_no_ground_of_its_own(tmp_path: Path) -> None:
    figures = {"sc": {"samples": 32.0, "rounds": 1.0, "agreement": 100.0, "agreement_independent": 90.0}}
    figures["plan"] = {"samples": 10.3, "rounds": 1.9, "agreement": 99.7, "agreement_independent": 90.0}
    draw_headline({"typical": figures}, tmp_path / "headline.png")
    draw_methods({"SC@32": (1.0, 200.0, 100.0), "its_hub Beta": (0.5, 190.0, 85.0)}, ("s", "t"), tmp_path / "flow.png")
    for name, told in (("headline", "10.3"), ("flow", "its_hub Beta")):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        svg = (tmp_path / f"{name}.svg").read_text()
        assert told in svg and "#ffffff" not in svg


def test_half_a_point_is_no_cliff_and_log_axes_have_plain_numbers(tmp_path: Path) -> None:
    costs = {"pool": "pool", "parameter": "", "seeds": 1, "rounds": 3.0, "samples": 20.0, "accuracy": 50.0}
    esc = {**costs, "method": "esc", "agreement": 99.9}
    plan = {**costs, "method": "plan", "rounds": 30.0, "agreement": 99.4}
    draw_plots(by_axes(curves_plot([esc, plan]), ("rounds",), "agreement", ["pool"]), tmp_path / "main.png")
    svg = (tmp_path / "main.svg").read_text()
    shown = [float(text) for text in re.findall(r">(\d+(?:\.\d+)?)</text>", svg)]
    assert {5, 10, 20} <= set(shown) and "10^" not in svg
    agreement = [one for one in shown if one > 80]
    assert max(agreement) - min(agreement) >= 8 and all(low < high for low, high in pairwise(agreement))
    assert LOOKS["plan"][0] in svg


def test_marks_at_the_top_are_whole(tmp_path: Path) -> None:
    setting = {"pool": "pool", "method": "sc", "seeds": 1}
    few = {**setting, "parameter": "draws=1", "samples": 1.0, "agreement": 20.0}
    plot = curves_plot([few, {**setting, "parameter": "draws=32", "samples": 32.0, "agreement": 100.0}])
    draw_plots(by_axes(plot, ("samples",), "agreement", ["pool"]), tmp_path / "main.png")
    svg = (tmp_path / "main.svg").read_text()
    (top,) = re.findall(r'<clipPath.*?<rect x="[\d.]+" y="([\d.]+)"', svg, re.DOTALL)
    marks = re.findall(rf'<use [^>]*y="([\d.]+)" style="fill: {LOOKS["sc"][0]}', svg)
    assert min(map(float, marks)) - float(top) > 2.5, "half a mark"


def test_numbers_of_marks_that_are_close_stand_apart(tmp_path: Path) -> None:
    places = [(0.72, 12984.0), (0.65, 13040.0), (0.70, 12731.0), (0.69, 12153.0), (1.4, 18000.0)]
    draw_methods({f"SC {place}": (*place, 99.0) for place in places}, ("s", "t"), tmp_path / "flow.png")
    svg = (tmp_path / "flow.svg").read_text()
    told = [tuple(map(float, at)) for at in re.findall(r'start; [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>\d</text>', svg)]
    assert len(told) == len(places)
    assert min(dist(one, other) for one, other in combinations(told, 2)) > 10
