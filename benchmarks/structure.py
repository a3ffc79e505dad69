"""Extraction from 200 simulated documents: votes by field against single responses, whole-object majorities and k-llms.

python benchmarks/structure.py; for k-llms: pip install --no-deps k-llms cachetools Levenshtein RapidFuzz Unidecode
"""

import argparse
import importlib
import random
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from statistics import fmean
from typing import Any

import numpy as np

import suffice
from suffice.elections import FieldElection, FieldTallies, field_accuracy
from suffice.replay.reliability import Reliability, decile_sums
from suffice.tally import FloatArray

BUDGET = 32
CONTROLLERS = ["plan", "plan:penalty_draw=0.004"]  # a draw serves all fields, so that for each it costs less
IGNORE = ["/summary"]  # a text that is never twice the same has no right value
EARLY = 4  # draws after which confidence is looked at too: at the stop there is little doubt left

Answer = dict[str, Any]
NAMES = ["Alder", "Birch", "Cedar", "Elm", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan", "Spruce", "Willow", "Yew"]
CITIES = ["Bern", "Basel", "Chur", "Genf", "Lugano", "Sion", "Thun", "Zug", "Aarau", "Olten"]
TAGS = ["urgent", "foreign", "recurring", "partial", "disputed", "credit", "export", "sample"]
WORDS = ["steel", "brass", "copper", "bolt", "plate", "hinge", "clamp", "washer", "spring", "valve", "cable", "lamp"]


def document(chance: random.Random) -> Answer:
    """What is true of one document."""
    lines: list[Answer] = [
        {
            "sku": f"{chance.choice('ABCDEF')}-{chance.randint(100, 999)}",
            "description": " ".join(chance.sample(WORDS, 3)),
            "quantity": chance.choice([1, 1, 2, 5, 10]),
            "price": round(chance.uniform(1, 200), 2),
        }
        for _ in range(chance.randint(1, 7))
    ]
    payment: Answer = {"type": "card", "last_digits": chance.randint(1000, 9999), "network": chance.choice("VM")}
    if chance.random() < 0.5:
        payment = {
            "type": "transfer",
            "iban": f"CH{chance.randint(10**9, 10**10)}",
            "due_days": chance.choice([10, 30]),
        }
    return {
        "number": f"INV-{chance.randint(10000, 99999)}",
        "date": f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "currency": chance.choice(["CHF", "EUR", "USD"]),
        "vendor": {
            "name": f"{chance.choice(NAMES)} & {chance.choice(NAMES)} AG",
            "address": {"city": chance.choice(CITIES), "zip": chance.randint(1000, 9999)},
            "vat": chance.choice([None, f"CHE-{chance.randint(100, 999)}"]),
        },
        "payment": payment,
        "tags": chance.sample(TAGS, chance.randint(0, 4)),
        "delivery_hours": sorted(chance.sample(range(7, 20), 2)),
        "lines": lines,
        "total": round(sum(line["quantity"] * line["price"] for line in lines), 2),
        "paid": chance.random() < 0.5,
    }


def misread(value: Any, chance: random.Random) -> Any:
    """A plausible wrong value in the place of a scalar."""
    if isinstance(value, bool):
        return not value
    if value is None:
        return f"CHE-{chance.randint(100, 999)}"
    if isinstance(value, int | float):
        return chance.choice([value * 10, value + 1, round(value * 1.1, 2), value - 1])
    letters = list(value)
    place = chance.randrange(len(letters))
    letters[place] = chance.choice("0123456789" if letters[place].isdigit() else "aeioumnr")
    return "".join(letters)


class Reader:
    """A model that reads one document again and again, with errors that are its own for this document."""

    def __init__(self, truth: Answer, hard: float, correlated: bool, chance: random.Random) -> None:
        self.truth, self.hard, self.correlated, self.chance = truth, hard, correlated, chance
        self._errors: dict[str, tuple[float, list[Any]]] = {}
        self._carelessness = chance.betavariate(1, 4)
        self._other_vendor = document(chance)["vendor"]

    def response(self) -> Answer:
        chance, truth = self.chance, self.truth
        careless = self.correlated and chance.random() < self._carelessness
        lines = truth["lines"]
        given = {**truth, "vendor": self._other_vendor} if careless and chance.random() < 0.5 else dict(truth)
        if careless and len(lines) > 2 and chance.random() < 0.5:  # the last page is skipped, and the total follows
            lines = lines[:-2]
            given["total"] = round(sum(line["quantity"] * line["price"] for line in lines), 2)
        given["lines"] = [line for line in lines if chance.random() > 0.02]
        if chance.random() < 0.05:
            given["lines"] = [*given["lines"], document(chance)["lines"][0]]
        if chance.random() < 0.1:
            given["lines"] = chance.sample(given["lines"], len(given["lines"]))
        if chance.random() < 0.05:
            given["payment"] = document(chance)["payment"]
        given = {name: self._read(value, f"/{name}") for name, value in given.items()}
        given["tags"] = chance.sample(given["tags"], len(given["tags"]))
        words = " ".join(chance.choices(WORDS, k=12))
        return {"summary": f"An invoice for {words}.", **dict(chance.sample(list(given.items()), len(given)))}

    def _read(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            own = f"{path}:{value.get('sku', '')}"
            return {name: self._read(part, f"{own}/{name}") for name, part in value.items()}
        if isinstance(value, list):
            kept = [part for part in value if self.chance.random() > 0.03] if path == "/tags" else value
            return [self._read(part, path if isinstance(part, dict) else f"{path}/{part}") for part in kept]
        rate, wrong = self._errors.setdefault(path, self._new_errors(value))
        if self.chance.random() < rate:
            return wrong[0] if self.chance.random() < 0.5 else self.chance.choice(wrong)
        return f" {value}  " if isinstance(value, str) and self.chance.random() < 0.05 else value

    def _new_errors(self, value: Any) -> tuple[float, list[Any]]:
        """How often a field is misread, and as what: mostly seldom, now and then more often than not."""
        hard = self.chance.random() < self.hard
        rate = self.chance.betavariate(3, 4) if hard else self.chance.betavariate(1, 40)
        return rate, [misread(value, self.chance) for _ in range(6)]


@dataclass
class Score:
    """What a method reached so far."""

    whole: list[float] = field(default_factory=list)
    without_union: list[float] = field(default_factory=list)
    fields: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)

    def add(self, answer: Any, truth: Answer, responses: Sequence[Any], samples: int, rounds: int = 1) -> None:
        right = field_accuracy(answer, truth, responses, ignore=IGNORE)
        self.whole.append(right.whole)
        self.without_union.append(all(ok for name, ok in right.fields.items() if not name.startswith("/payment")))
        self.fields.append(right.share)
        self.samples.append(samples)
        self.rounds.append(rounds)

    def row(self, name: str) -> str:
        right = " | ".join(f"{100 * fmean(one):.1f}" for one in (self.whole, self.without_union, self.fields))
        return f"| {name} | {right} | {fmean(self.samples):.1f} | {fmean(self.rounds):.2f} |"


def won(tallies: FieldTallies) -> FieldElection:
    election = tallies.elect()
    assert election is not None
    return election


def elected(responses: Sequence[Any]) -> FieldElection:
    tallies = FieldTallies(BUDGET)
    for response in responses:
        tallies = tallies.joined_by(response)
    return won(tallies)


def confidences(election: FieldElection, full: FieldElection, responses: Sequence[Any]) -> FloatArray:
    """How sure an election is of its fields, by decile, and how many are as in the full budget's."""
    same = field_accuracy(full.value, election.value, responses).fields
    voted = {pointer: one.tally for pointer, one in election.fields.items() if one.leads}
    sure = np.array([suffice.confidence(tally) for tally in voted.values()], float)
    return decile_sums(sure, np.array([same[pointer] for pointer in voted]))


def drawn(responses: Sequence[Any], controller: suffice.Controller) -> FieldTallies:
    """Draw what the field that asks for the most asks for, until none does."""
    tallies = FieldTallies(BUDGET)
    while asked := tallies.next_round(controller):
        for response in responses[tallies.draws :][:asked]:
            tallies = tallies.joined_by(response)
        tallies.end_round()
    return tallies


@cache
def k_llms() -> Callable[[Sequence[Any], bool], Any] | None:
    """Its consensus of some responses, after aligning their lists or, as its client does, without; None if not there.

    Its package can't be imported beside the present release of its dependency retab, of which the consensus uses
    nothing; so what it asks for there is stood in for, and its client, which needs a network, is left out.
    """
    found = find_spec("k_llms")
    if found is None or not found.submodule_search_locations:
        return None
    for name, names in {
        "retab.utils.json_schema": ("filter_auxiliary_fields", "flatten_dict", "unflatten_dict"),
        "retab.types.documents.extractions": tuple(
            f"RetabParsed{kind}"
            for kind in ("ChatCompletion", "ChatCompletionChunk", "ChoiceChunk", "ChoiceDeltaChunk")
        ),
    }.items():
        module = types.ModuleType(name)
        vars(module).update(dict.fromkeys(names, object))
        sys.modules[name] = module
    package = types.ModuleType("k_llms")
    package.__path__ = list(found.submodule_search_locations)
    sys.modules["k_llms"] = package
    utils = importlib.import_module("k_llms.utils.consensus_utils")
    settings = utils.ConsensusSettings(string_similarity_method="levenshtein")  # embeddings would need a network

    def consensus(responses: Sequence[Any], aligned: bool) -> Any:
        values = list(responses)
        if aligned:
            values, _ = utils.recursive_list_alignments(values, "levenshtein", None, settings.min_support_ratio)
        return utils.consensus_values(values, settings, lambda texts: [[0.0] for _ in texts])[0]

    return consensus


def compare(documents: int, hard: float, correlated: bool, seed: int) -> None:
    chance = random.Random(seed)
    theirs = k_llms()
    scores: dict[str, Score] = {}
    at_stop: list[FloatArray] = []
    early: list[FloatArray] = []
    for _ in range(documents):
        truth = document(chance)
        reader = Reader(truth, hard, correlated, chance)
        responses = [reader.response() for _ in range(BUDGET)]

        def add(
            name: str, answer: Any, samples: int, rounds: int = 1, truth: Any = truth, all_: Any = responses
        ) -> None:
            scores.setdefault(name, Score()).add(answer, truth, all_, samples, rounds)

        full = elected(responses)
        add("single response", responses[0], 1)
        add("whole-object majority of 32", responses[full.whole.answers.index(full.whole.leader)], BUDGET)
        add("fields, all 32", full.value, BUDGET)
        if theirs:
            for n in (3, 8, BUDGET):  # 3 is what its own examples ask for
                add(f"k-llms, n = {n}", theirs(responses[:n], False), n)
                add(f"k-llms, lists aligned first, n = {n}", theirs(responses[:n], True), n)
        for name in CONTROLLERS:
            tallies = drawn(responses, suffice.get_controller(name))
            add(f"fields, {name}", won(tallies).value, tallies.draws, len(tallies.round_ends))
            at_stop.append(confidences(won(tallies), full, responses))
        early.append(confidences(elected(responses[:EARLY]), full, responses))
    print(f"\n{documents} documents, errors {'correlated' if correlated else 'independent'}\n")
    report(scores, {"at the stop": at_stop, f"after {EARLY} draws": early})


def report(scores: dict[str, Score], sums: dict[str, list[FloatArray]]) -> None:
    print("| method | whole objects right % | but for the union % | fields right % | samples | rounds |")
    for name, score in scores.items():
        print(score.row(name))
    for when, parts in sums.items():
        reliability = Reliability(np.sum(parts, axis=0))
        print(f"\nfield confidence {when}: calibration error {reliability.calibration_error:.2f} points")
        for one in reliability.deciles:
            shown = f"confidence {one['confidence']:.1f} %, {one['agreement']:.1f} % stay"
            print(f"  {one['share']:5.1f} % of fields: {shown}")
    for name in CONTROLLERS:
        score, all_32 = scores[f"fields, {name}"], scores["fields, all 32"]
        gap, share = 100 * (fmean(score.whole) - fmean(all_32.whole)), fmean(score.samples) / BUDGET
        print(f"{name} against all 32: {gap:+.1f} points of whole objects, {share:.0%} of the samples")
    print("(target: at least as many whole objects, at most 50 %)", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=200)
    options.add_argument("--hard", type=float, default=0.02, help="the share of fields that are often misread")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    for correlated in (False, True):
        compare(chosen.documents, chosen.hard, correlated, chosen.seed)


if __name__ == "__main__":
    main()
