"""Sizes in bytes, so that no test multiplies by hand."""

KB = 1024
MB = 1024 * KB
GB = 1024 * MB


def pages(size: int, page_size: int) -> int:
    """How many pages of page_size bytes hold size bytes."""
    return -(-size // page_size)
