"""Logs of evaluations: Inspect's, with a sample for each epoch, and the harness's, with repeats."""

import importlib
import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from suffice.errors import OptionError, PoolError
from suffice.importing.rows import Dropped, ImportedRow, Rows, json_lines, wanted
from suffice.jsonl import read_unpacked
from suffice.response import Response

NOT_FOUND = "[invalid]"
"""What the harness's filters say where they find no answer."""


def inspect_log(path: Path) -> Rows:
    """Responses of an Inspect log, .eval or .json; their answers are those of the first scorer."""
    for place, sample in _samples(path):
        yield _epoch(sample, place)


def _epoch(sample: dict[str, Any], place: str) -> ImportedRow | Dropped:
    identity = str(wanted(sample, "id", place))
    if sample.get("error"):
        return Dropped("ended in an error")
    output = sample.get("output") or {}
    choices = output.get("choices") or []
    if not choices:
        return Dropped("no output")
    reason = {"max_tokens": "length"}.get(choices[0].get("stop_reason"), choices[0].get("stop_reason"))
    tokens = (output.get("usage") or {}).get("output_tokens")
    scores = list((sample.get("scores") or {}).values())
    given = scores[0].get("answer") if scores else None
    response = Response(output.get("completion") or "", reason, tokens)
    return ImportedRow(identity, response, given, given is not None, _one_target(sample.get("target")))


def _one_target(target: Any) -> str | None:
    """The gold answer; where any of several will do there is not one."""
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else None
    return str(target) if target not in (None, "") else None


def _samples(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not zipfile.is_zipfile(path):
        try:
            log = json.loads(read_unpacked(path, PoolError))
            samples = log["samples"]
        except (ValueError, KeyError, TypeError):
            raise PoolError(f"{path}: it is no Inspect log, or one without samples") from None
        yield from ((f"{path}, sample {number}", sample) for number, sample in enumerate(samples or [], 1))
        return
    with suppress(ModuleNotFoundError):
        importlib.import_module("zipfile_zstd")  # newer logs are packed by Zstandard, which this teaches zipfile
    try:
        with zipfile.ZipFile(path) as log:
            names = [name for name in log.namelist() if name.startswith("samples/")]
            for name in sorted(names, key=_in_order):
                yield f"{path}, {name}", json.loads(log.read(name))
    except NotImplementedError:
        raise OptionError(
            f"{path}: this log is packed by Zstandard, which needs zipfile-zstd: pip install 'suffice[inspect]'"
        ) from None
    except (zipfile.BadZipFile, ValueError):
        raise PoolError(f"{path}: it is no whole Inspect log; copy it again") from None


def _in_order(name: str) -> tuple[str, int]:
    identity, _, epoch = name.removesuffix(".json").rpartition("_epoch_")
    return identity, int(epoch)


def harness_samples(path: Path) -> Rows:
    """Responses of the harness's --log_samples; where several filters were used, those of the first count."""
    filters: dict[str, str] = {}
    for number, record in json_lines(path, "doc_id, target, resps and filtered_resps"):
        place = f"{path}, line {number}"
        identity = str(wanted(record, "doc_id", place))
        used = str(record.get("filter"))
        texts, given = _flat(wanted(record, "resps", place)), _flat(record.get("filtered_resps"))
        if filters.setdefault(identity, used) != used:
            yield from (Dropped("there again by another filter") for _ in texts)
            continue
        # A filter that takes the first, or the majority, leaves fewer than there were: then the texts are read.
        each = given if len(given) == len(texts) else [None] * len(texts)
        for text, answer in zip(texts, each, strict=True):
            if not isinstance(text, str):
                yield Dropped("no text but a likelihood")
                continue
            found = answer if isinstance(answer, str) and answer != NOT_FOUND else None
            gold = _one_target(record.get("target"))
            yield ImportedRow(identity, Response(text), found, answer is not None, _after_marks(gold))


def _after_marks(gold: str | None) -> str | None:
    """The answer of a worked solution that ends in #### and the answer, as GSM8K's do."""
    return gold.rpartition("####")[2].strip() if gold else None


def _flat(responses: Any) -> list[Any]:
    """The repeats, in however many lists; a likelihood is a list too, and stays whole."""
    if not isinstance(responses, list):
        return [] if responses is None else [responses]
    if responses and isinstance(responses[0], int | float):
        return [responses]
    return [one for part in responses for one in _flat(part)]
