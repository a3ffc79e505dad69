"""The page docs/cli.md: what typer makes of the help, with lists of commands that are whole and lead to them."""

import re


def readable(page: str) -> str:
    """The page with the commands in its lists as links, each with its first sentence instead of a part of it.

    >>> print(readable("* `ask`: Ask a...\\n\\n## `suffice ask`\\n\\nAsk a question.\\n"), end="")
    * [`ask`](#suffice-ask): Ask a question.
    <BLANKLINE>
    ## `suffice ask`
    <BLANKLINE>
    Ask a question.
    """
    about = dict(re.findall(r"^#+ `suffice (.+)`\n\n(.+)$", page, re.MULTILINE))
    group = ""
    lines = []
    for line in page.splitlines(keepends=True):
        if heading := re.match(r"#+ `suffice (.+)`", line):
            group = f"{heading[1]} "
        item = re.match(r"\* `(\w+)`: ", line)
        name = group + item[1] if item else ""
        if item and name in about:
            line = f"* [`{item[1]}`](#suffice-{name.replace(' ', '-')}): {about[name]}\n"
        lines.append(line)
    return "".join(lines)
