"""Parts of documents that a program writes."""


def between_markers(page: str, name: str, text: str) -> str:
    """The page with what is between the markers `<!-- NAME -->` and `<!-- /NAME -->` replaced, or added at its end."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    block = f"{begin}\n{text.strip()}\n{end}"
    if begin in page:
        before, rest = page.split(begin, 1)
        return before + block + rest.split(end, 1)[1]
    return page.rstrip("\n") + "\n" * 2 * bool(page.strip()) + block + "\n"


BEGIN_RUNS, END_RUNS = "<!-- runs -->\n", "<!-- /runs -->\n"
HEAD_OF_RUNS = """| what | system | when | command | checked | right | open | wrong |
| --- | --- | --- | --- | --: | --: | --: | --: |
"""


def with_row(page: str, cells: list[str]) -> str:
    """The page (tests/tested-on.md) with a row in its table of runs, in the place of the row with the same first cell, else at the
    end. A page without a table gets one."""
    if BEGIN_RUNS not in page:
        page = page.rstrip("\n") + "\n" * 2 * bool(page.strip()) + BEGIN_RUNS + HEAD_OF_RUNS + END_RUNS
    before, rest = page.split(BEGIN_RUNS, 1)
    rows, after = rest.split(END_RUNS, 1)
    lines = rows.splitlines(keepends=True)
    row = f"| {' | '.join(cells)} |\n"
    places = [at for at, line in enumerate(lines) if line.startswith(f"| {cells[0]} |")]
    lines[slice(places[0], places[0] + 1) if places else slice(len(lines), None)] = [row]
    return before + BEGIN_RUNS + "".join(lines) + END_RUNS + after
