"""What pools that were given back leave of the memory for pages of 1 GB."""

from contextlib import suppress

from descriptors import needs_optimizing

from harness import sidecar
from harness.cluster import Unsupported
from harness.pool import NoGigabyte
from harness.sidecar import OK
from harness.units import GB


def test_freed_descriptors_leave_memory_in_pieces(pool):
    """What `apply --optimize-vmemmap` says: a pool that was made with it and given back costs the free gigabytes, a plain one none."""
    needs_optimizing()
    gigantic = pool(GB, 0)

    def free_gigabytes(*options: str) -> int:
        """The pages of 1 GB that the kernel gives after a pool of 8 GB in pages of 2 MB was there."""
        answer = sidecar.run("apply", "--pages", 4096, "--page-size", "2MB", *options)
        assert answer.status == OK and ("until the next boot" in answer.stdout) == bool(options), answer
        assert sidecar.run("apply", "--pages", 0, "--page-size", "2MB").status == OK
        with suppress(NoGigabyte):
            gigantic.resize(9)
        found = gigantic.persistent()
        gigantic.resize(0)
        return found

    before = free_gigabytes()
    assert free_gigabytes() == before
    left = free_gigabytes("--optimize-vmemmap")
    assert left <= before
    if left == before:
        raise Unsupported("this kernel allocates the descriptors where they leave the free gigabytes whole")
