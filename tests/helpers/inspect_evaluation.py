"""Run as a program: an evaluation by Inspect's mock model, with epochs that stop early; what its log says, as JSON.

A process of its own, since Inspect changes the event loop, logging and the terminal of the one it runs in.
"""

import json
import re
import sys
from itertools import count
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import answer

from suffice.inspect import early_stopping, majority

DOCS = Path(__file__).parents[2] / "docs" / "joins.md"

SAID = {"settled": ["1/2", "0.5"], "unsettled": ["1", "2"], "failing": ["7"]}


def main(folder: str) -> dict[str, Any]:
    draws = {question: count() for question in SAID}

    def reply(messages: Any, *_: Any) -> ModelOutput:
        question = messages[-1].text
        draw = next(draws[question])
        if question == "failing" and draw < 2:
            raise RuntimeError("the model fails")
        output = ModelOutput.from_content("mock", f"ANSWER: {SAID[question][draw % len(SAID[question])]}")
        output.usage = ModelUsage(input_tokens=1, output_tokens=10 + draw, total_tokens=11 + draw)
        return output

    task = Task(
        dataset=[Sample(question, target=said[0], id=question) for question, said in SAID.items()],
        scorer=answer("line"),
        epochs=Epochs(12, majority()),
        early_stopping=early_stopping("esc:window=4", budget=8),
    )
    model = get_model("mockllm/model", custom_outputs=reply)
    (log,) = evaluate(task, model, display="none", log_dir=folder, max_samples=30, fail_on_error=False)
    assert log.results and log.results.early_stopping and log.reductions, log.error
    write_eval_log(log, f"{folder}/log.json")
    return {
        "logs": [log.location, f"{folder}/log.json"],
        "summary": log.results.early_stopping.model_dump(mode="json"),
        "reduced": {one.sample_id: one.model_dump(mode="json") for one in log.reductions[0].samples},
    }


def documented(folder: str) -> dict[str, Any]:
    """The task of the docs, by a model that always says the same."""
    names: dict[str, Any] = {}
    (block,) = re.findall(r"^```py\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    exec(compile(block, str(DOCS), "exec"), names)

    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mock", "ANSWER: 42")
        output.usage = ModelUsage()
        return output

    model = get_model("mockllm/model", custom_outputs=reply)
    (log,) = evaluate(names["task"], model, display="none", log_dir=folder)
    assert log.results and log.results.early_stopping, log.error
    said: dict[str, Any] = log.results.early_stopping.metadata
    return said


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1]) | {"documented": documented(sys.argv[1])}))
