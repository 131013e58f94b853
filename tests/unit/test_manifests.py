"""The page shows the manifests of packaging/kubernetes, and their limits hold what its table says."""

import re

import pytest
from machine import REPOSITORY

PAGE = (REPOSITORY / "docs/kubernetes.md").read_text()
DIRECTORY = REPOSITORY / "packaging/kubernetes"
MANIFESTS = {path.name: path.read_text() for path in sorted(DIRECTORY.iterdir())}


def test_the_page_shows_them():
    """Of the StatefulSet only the lines about huge pages, in their order."""
    cloudnative_pg, statefulset, compose = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    assert (cloudnative_pg, compose) == (MANIFESTS["cloudnative-pg.yaml"], MANIFESTS["compose.yaml"]) and len(MANIFESTS) == 3
    lines = iter(MANIFESTS["statefulset.yaml"].splitlines())
    assert [line for line in statefulset.splitlines() if line not in lines] == [] and "packaging/kubernetes/statefulset.yaml" in PAGE


def needed(buffers: str, major: str) -> int:
    """The page's number for shared_buffers, in MiB."""
    [majors] = re.findall(r"^\| `shared_buffers` \| (.*) \|$", PAGE, re.M)
    [numbers] = re.findall(rf"^\| {buffers} \| (.*) \|$", PAGE, re.M)
    return int(dict(zip(majors.split(" | "), numbers.split(" | ")))[major].removesuffix("Mi"))


@pytest.mark.parametrize("name", ["cloudnative-pg.yaml", "statefulset.yaml"])
def test_the_limit_holds_shared_memory(name):
    """With a reserve of 2%; a multiple of the page size, beside memory and cpu, and no request, which would have to be the same."""
    text = MANIFESTS[name]
    [buffers] = re.findall(r"shared_buffers[=:] ?(\w+)$", text, re.M)
    [limit] = map(int, re.findall(r"hugepages-2Mi: (\d+)Mi ", text))
    [major] = set(re.findall(r"image(?:Name)?: .*?:(\d+)[-\w]*$", text, re.M))
    assert limit >= 1.02 * needed(buffers, major) and limit % 2 == 0
    [limits] = re.findall(r"limits:\n((?: +\S+: .*\n){3})", text)
    assert re.findall(r"^ +(\S+):", limits, re.M) == ["hugepages-2Mi", "memory", "cpu"] and "requests:\n            hugepages" not in text


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_server_without_its_pages_fails_at_its_start(name):
    assert len(re.findall(r"huge_pages(?:=|: \")on\b", MANIFESTS[name])) == 1
