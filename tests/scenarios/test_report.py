"""`hugepage-sidecar report`: the page in a real browser, its figures beside the JSON, and what it must never do."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import sidecar
from harness.cluster import Cluster, Unsupported
from harness.host_tree import FIXTURES, HOSTILE, Host, busy_host, eventful
from harness.units import GB, MB

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

WIDTHS = (390, 768, 1280)

# What the browser computes of the page's style: widths, colours, contrast.
STYLE = """
const parse = text => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a ?? 1]; };
const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const behind = element => {
    for (; element; element = element.parentElement) {
        const colour = getComputedStyle(element).backgroundColor;
        if (colour.startsWith('rgb') && parse(colour)[3] === 1) return parse(colour);
    }
    return [255, 255, 255];
};
const faint = [];
for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest('svg, .skip')) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) faint.push(element.outerHTML.slice(0, 200));
}
return {
    wide: document.documentElement.scrollWidth,
    screen: document.documentElement.clientWidth,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    page: getComputedStyle(document.body).backgroundColor,
    faint,
};
"""

# Every figure with its name, below each element of a selector.
FIGURES = """
return [...document.querySelectorAll(arguments[0])].map(element => Object.fromEntries(
    [...element.querySelectorAll('[data-field]')].map(figure =>
        [figure.dataset.field, figure.tagName === 'DATA' ? Number(figure.value) :
            figure.tagName === 'TIME' ? figure.dateTime : figure.textContent.trim()])));
"""

# What a screen reader has to hold on to.
SEMANTICS = """
const all = (selector, good) => [...document.querySelectorAll(selector)].filter(element => !good(element))
    .map(element => element.outerHTML.slice(0, 200));
const ids = [...document.querySelectorAll('[id]')].map(element => element.id);
return {
    landmarks: ['header', 'main', 'footer'].map(name => document.querySelectorAll('body > ' + name).length),
    title: document.title,
    language: document.documentElement.lang,
    tables: all('table', table => table.caption && table.tHead &&
        [...table.querySelectorAll('th')].every(header => header.scope)),
    rows: all('tbody tr', row => row.querySelector('th[scope=row]')),
    pictures: all('svg', svg => svg.getAttribute('aria-hidden') === 'true' || svg.parentElement.closest('svg') ||
        (svg.querySelector(':scope > title') && svg.querySelector(':scope > desc'))),
    named: all('section, article, [role=region]', part => document.getElementById(part.getAttribute('aria-labelledby'))),
    references: all('[aria-labelledby]', part => part.getAttribute('aria-labelledby').split(' ')
        .every(id => document.getElementById(id))),
    twice: ids.filter((id, index) => ids.indexOf(id) !== index),
    headings: [...document.querySelectorAll('h1, h2, h3')].map(heading => Number(heading.tagName[1])),
};
"""


class Browser:
    """A headless Chromium that tells what it asked for and what it complained of."""

    def __init__(self) -> None:
        # Not above: where this is only collected, as for the other majors, there is no Selenium.
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
        if not program or not driver:
            raise Unsupported("the report was not checked in a browser: install chromium and chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--disable-background-networking", "--disable-component-update", "--no-first-run",
                         "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(driver), options=options)

    def show(self, page: Path, width: int = 1280, dark: bool = False) -> None:
        """Load the page anew on a screen of that width, and forget what was before."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.complaints(), self.requests()
        self.driver.get(page.as_uri())

    def ask(self, script: str, *arguments: Any) -> Any:
        """What a script answers; the page's own policy does not bind it."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What stood in the console since the page was loaded."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was loaded."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        height = self.ask("return document.documentElement.scrollHeight")
        width = self.ask("return document.documentElement.clientWidth")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.save_screenshot(str(path))


@contextmanager
def chromium() -> Iterator[Browser]:
    browser = Browser()
    try:
        yield browser
    finally:
        browser.driver.quit()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def write(page: Path, *arguments: str | Path) -> sidecar.Answer:
    answer = sidecar.run("report", "--html", page, *arguments)
    assert answer.status in (sidecar.OK, sidecar.WARNING, sidecar.CRITICAL, sidecar.UNKNOWN), answer
    assert page.exists(), answer.stderr
    return answer


@pytest.fixture
def busy(tmp_path: Path) -> tuple[Path, Path]:
    """A tree and its page."""
    host = busy_host(tmp_path / "host")
    page = tmp_path / "report.html"
    write(page, "--root", host.directory)
    return host.directory, page


def assert_quiet(browser: Browser, page: Path) -> None:
    """It asked for nothing but itself, and there was nothing to complain of."""
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:,")] == [page.as_uri()]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_fits_every_screen(busy: tuple[Path, Path], browser: Browser, width: int, dark: bool) -> None:
    _, page = busy
    browser.show(page, width, dark)
    assert_quiet(browser, page)
    style = browser.ask(STYLE)
    assert style["screen"] == width
    assert style["wide"] <= width, "something sticks out"
    assert style["dark"] == dark
    assert style["faint"] == [], "text with a contrast below 4.5 (WCAG 1.4.3)"
    browser.picture(page.with_suffix(".png"))
    assert page.with_suffix(".png").stat().st_size > 10_000, "for people to look at, in pytest's directory"
    browser.show(page, width, not dark)
    assert browser.ask(STYLE)["page"] != style["page"]


def test_figures_are_those_of_the_json(busy: tuple[Path, Path], browser: Browser) -> None:
    tree, page = busy
    status = sidecar.run("status", "--format", "json", "--root", tree).json()
    browser.show(page)
    assert browser.ask("return document.querySelector('.verdict [data-field=verdict]').textContent") == status["verdict"]
    assert browser.ask("return document.querySelector('.verdict .message').textContent") == status["message"]

    shown = browser.ask(FIGURES, "article.instance")
    assert len(shown) == len(status["instances"]) == 3
    for figures, row in zip(shown, status["instances"]):
        for name, figure in figures.items():
            expected = row[name] if row[name] is not None else "unknown"
            # HTML does not tell runs of spaces apart.
            assert figure == (" ".join(expected.split()) if isinstance(expected, str) else expected), name
        assert {"kind", "name", "verdict", "message", "landed_in", "shared_memory", "huge_page_bytes", "base_page_bytes",
                "pages_needed", "pages_held", "pages_missing", "processes", "page_tables_total"} <= set(figures)

    pools = browser.ask(FIGURES, "section[aria-labelledby=pools] tbody tr")
    assert len(pools) == len(status["pools"])
    for figures, row in zip(pools, status["pools"]):
        assert figures == {name: row[name] for name in figures}
        assert {"page_size", "nr_hugepages", "free_hugepages"} <= set(figures)


def test_page_tables_at_other_numbers_of_connections(busy: tuple[Path, Path], browser: Browser) -> None:
    """Beside what the smallest process has (the hostile server's postmaster: 120 kB), 8 bytes for each page of 4 kB; of the
    tables of 2 MB pages processes share all but those at both ends of the segment (docs/results.md)."""
    tree, page = busy
    write(page, "--root", tree, "--connections", "1000")
    browser.show(page)
    _, figures, _ = browser.ask(FIGURES, "section[aria-labelledby=tables] figure")
    assert figures["on_base"] == 1000 * ((120 << 10) + 30 * GB // 4096 * 8)
    assert figures["on_huge"] == 1000 * ((120 << 10) + 2 * (4 << 10)) + 29 * (4 << 10)


def test_history_of_watch_and_of_a_copy(tmp_path: Path, browser: Browser) -> None:
    """Both kinds of histories are shown; the records of another machine, whose copy this is, are not."""
    data, page = "/var/lib/postgresql/15/main", tmp_path / "report.html"
    host = Host(tmp_path / "host")
    host.postgresql(data, 4000 * 2 * MB, 2 * MB)
    host.history(f"{data}/pg_hugepages.history", *eventful(), machine="another", directory=data)
    host.history("/var/lib/hugepage-sidecar/postgresql-var-lib-postgresql-15-main.history", *eventful()[:1], directory=data)
    write(page, "--root", host.directory)
    browser.show(page)
    past = browser.ask("return document.querySelector('section[aria-labelledby=history] article').innerText")
    assert "1 start, 0 losses" in " ".join(past.split())
    assert "recorded by hugepage-sidecar watch" in past
    assert "4 records in" in past and "belong to other instances" in past


def test_history_that_cannot_be_read_is_not_called_missing(tmp_path: Path, browser: Browser) -> None:
    data, page = "/var/lib/postgresql/15/main", tmp_path / "report.html"
    host = Host(tmp_path / "host")
    host.postgresql(data, 4000 * 2 * MB, 2 * MB)
    (host.directory / data.lstrip("/") / "pg_hugepages.history").symlink_to("/etc/passwd")
    write(page, "--root", host.directory)
    browser.show(page)
    past = browser.ask("return document.querySelector('section[aria-labelledby=history] article').innerText")
    assert "could not be determined" in past and "is a symbolic link, not a history file" in past
    assert "no history" not in past


def test_hostile_names_are_harmless(busy: tuple[Path, Path], browser: Browser) -> None:
    _, page = busy
    browser.show(page)
    assert browser.ask("return document.querySelectorAll('script, img, iframe, object, embed, [onerror]').length") == 0
    names = browser.ask("return [...document.querySelectorAll('article.instance .name')].map(name => name.textContent)")
    assert HOSTILE in names
    assert "<script" not in page.read_text()
    assert_quiet(browser, page)
    policy = browser.ask("return document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
    assert "default-src 'none'" in policy and "script-src" not in policy


def test_policy_forbids_what_would_slip_through(busy: tuple[Path, Path], browser: Browser) -> None:
    """Even with markup in it that nobody escaped, the page runs and loads nothing."""
    _, page = busy
    smuggled = "<script>document.title = 'run'</script><img src='http://report.example/x'></body>"
    page.write_text(page.read_text().replace("</body>", smuggled))
    browser.show(page)
    assert browser.ask("return document.title") == "Huge pages of db1"
    assert len(browser.complaints()) == 2, "one for each"


def test_semantics(busy: tuple[Path, Path], browser: Browser) -> None:
    _, page = busy
    browser.show(page)
    found = browser.ask(SEMANTICS)
    headings = found.pop("headings")
    assert headings.count(1) == 1 and headings[0] == 1
    assert all(later - earlier <= 1 for earlier, later in zip(headings, headings[1:])), "no level is skipped"
    assert found == {"landmarks": [1, 1, 1], "title": "Huge pages of db1", "language": "en", "tables": [], "rows": [],
                     "pictures": [], "named": [], "references": [], "twice": []}


@pytest.mark.parametrize("fixture", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_every_kind_of_machine(fixture: str, tmp_path: Path, browser: Browser) -> None:
    """Old kernels, containers, no /sys: what is unknown is said, and the page is whole."""
    page = tmp_path / "report.html"
    write(page, "--root", FIXTURES / fixture)
    browser.show(page, 390)
    assert_quiet(browser, page)
    assert browser.ask(STYLE)["wide"] <= 390
    assert "No PostgreSQL or Oracle instance was found" in browser.ask("return document.body.innerText")


def test_file_is_replaced_whole_or_left_alone(tmp_path: Path) -> None:
    tree, page = FIXTURES / "two-nodes", tmp_path / "report.html"
    page.write_text("old")
    write(page, "--root", tree)
    assert page.read_text().endswith("</html>\n") and page.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [page], "nothing is left beside it"
    assert sidecar.run("report", "--html", "-", "--root", tree).stdout == page.read_text()

    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("of somebody else")
    link.symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for place in (link, tmp_path / "pipe", tmp_path, tmp_path / "missing/report.html"):
        answer = sidecar.run("report", "--html", place, "--root", tree)
        assert answer.status == sidecar.UNKNOWN and f'could not write "{place}"' in answer.stderr
    assert link.is_symlink() and target.read_text() == "of somebody else"
    assert sidecar.run("report", "--root", tree).status == sidecar.USAGE


@pytest.mark.whole_host
def test_live_server(new_cluster: Callable[..., Cluster], pool: Callable[..., Any], tmp_path: Path,
                     browser: Browser) -> None:
    """A real server in huge pages, and both its histories: its own, and that of the program that watches it."""
    server = new_cluster(shared_preload_libraries="pg_hugepages", huge_pages=True)
    pool(2 * MB, server.pages_needed(2 * MB))
    server.start()
    session = server.connect()
    page, state = tmp_path / "report.html", tmp_path / "state"
    state.mkdir()
    watched = sidecar.run("watch", "--once", "--state-dir", state)
    assert list(state.glob("postgresql-*.history")), watched
    write(page, "--state-dir", state)
    status = sidecar.run("status", "--format", "json").json()
    session.close()
    row, = (row for row in status["instances"] if row["name"] == str(server.data))
    assert row["landed_in"] == "hugetlb"
    browser.show(page)
    figures, = (figures for figures in browser.ask(FIGURES, "article.instance") if figures["name"] == row["name"])
    for name in ("kind", "pid", "verdict", "landed_in", "page_size", "shared_memory", "huge_page_bytes", "pages_needed",
                 "pages_held", "huge_pages", "version", "started"):
        assert figures[name] == row[name], name
    past = browser.ask("return [...document.querySelectorAll('section[aria-labelledby=history] article')]"
                       ".map(past => past.innerText)")
    past, = (text for text in past if row["name"] in text)
    assert " ".join(past.split()).count("1 start, 0 losses") == 2
    assert "recorded by the server" in past and "recorded by hugepage-sidecar watch" in past
    assert_quiet(browser, page)
