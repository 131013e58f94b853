"""Units of size in bytes."""

KB = 1024
MB = 1024 * KB
GB = 1024 * MB


def pages(size: int, page_size: int) -> int:
    """The number of pages of `page_size` bytes that hold `size` bytes."""
    return -(-size // page_size)
