"""Parts of documents that a program writes."""

import sys

from machine import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from harness.markers import BEGIN_RUNS, END_RUNS, HEAD_OF_RUNS, between_markers, with_row


def test_only_the_text_between_the_markers_is_rewritten():
    page = between_markers("# Tested on\n\nThe lab's table.\n", "foretell", "first")
    assert page == "# Tested on\n\nThe lab's table.\n\n<!-- foretell -->\nfirst\n<!-- /foretell -->\n"
    assert between_markers(page + "More.\n", "foretell", "second") == page.replace("first", "second") + "More.\n"


def test_a_row_of_runs_replaces_that_of_the_same_name():
    page = with_row("# Tested on\n", ["walk", "Linux 6.1", "2026-01-01", "`./dev foretell`", "3", "2", "1", "0"])
    assert page == (f"# Tested on\n\n{BEGIN_RUNS}{HEAD_OF_RUNS}"
                    f"| walk | Linux 6.1 | 2026-01-01 | `./dev foretell` | 3 | 2 | 1 | 0 |\n{END_RUNS}")
    two = with_row(page + "More.\n", ["walk, 6.1", "Linux 6.1", "", "", "1", "1", "0", "0"])
    assert two.count("\n| walk") == 2 and two.endswith(f"{END_RUNS}More.\n")
    again = with_row(two, ["walk", "Linux 6.2", "", "", "9", "9", "0", "0"])
    assert again.count("\n| walk") == 2 and "Linux 6.2" in again and again.index("| walk |") < again.index("| walk, 6.1 |")
