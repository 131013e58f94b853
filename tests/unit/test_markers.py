"""Parts of documents that a program writes."""

import sys

from machine import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from harness.markers import between_markers


def test_only_the_text_between_the_markers_is_rewritten():
    page = between_markers("# Tested on\n\nThe lab's table.\n", "foretell", "first")
    assert page == "# Tested on\n\nThe lab's table.\n\n<!-- foretell -->\nfirst\n<!-- /foretell -->\n"
    assert between_markers(page + "More.\n", "foretell", "second") == page.replace("first", "second") + "More.\n"
