"""Parts of documents that a program writes."""


def between_markers(page: str, name: str, text: str) -> str:
    """The page with what is between the markers `<!-- NAME -->` and `<!-- /NAME -->` replaced, or added at its end."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    block = f"{begin}\n{text.strip()}\n{end}"
    if begin in page:
        before, rest = page.split(begin, 1)
        return before + block + rest.split(end, 1)[1]
    return page.rstrip("\n") + "\n" * 2 * bool(page.strip()) + block + "\n"
