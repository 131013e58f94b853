"""What the answers of ./dev foretell count as, and the table of them."""

import sys

import pytest
from machine import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from foretell.scores import NO_NOTE, Outlook, Prediction, Score, Tally, counts, reason, score, table, total, warns_of_crash


@pytest.mark.parametrize("lands_in,landed,worth", [
    ("hugetlb", "hugetlb", Score.HIT), ("base", "base", Score.HIT), ("fails", "fails", Score.HIT),
    ("hugetlb", "base", Score.FALSE_PROMISE), ("hugetlb", "fails", Score.FALSE_PROMISE), ("base", "fails", Score.FALSE_PROMISE),
    ("base", "hugetlb", Score.FALSE_ALARM), ("fails", "hugetlb", Score.FALSE_ALARM), ("fails", "base", Score.FALSE_ALARM),
    ("unknown", "fails", Score.UNKNOWN), ("unknown", "hugetlb", Score.UNKNOWN), ("", "base", Score.UNKNOWN),
    ("mixed", "base", Score.UNKNOWN),
])
def test_a_landing_worse_than_said_is_a_wrong_promise_and_a_better_one_a_false_alarm(lands_in, landed, worth):
    assert score(lands_in, landed) is worth


@pytest.mark.parametrize("entries,warns", [
    ([], False),
    ([("WARNING", "the next start would lose huge pages (also after a crash) [restart_loses]")], True),
    ([("WARNING", "the next start would lose huge pages (also after a crash) [restart_loses]"),
      ("LOG", "the restart after a crash would no longer lose huge pages")], False),
    ([("WARNING", "the next start would lose huge pages (also after a crash) [restart_loses]"),
      ("LOG", "the next start would get its huge pages again, but not the restart after a crash")], True),
    ([("WARNING", "the restart after a crash of one process would fail [crash_fails]"),
      ("LOG", "the next start would no longer fail (also after a crash)")], False),
    ([("WARNING", "the next start would lose huge pages with the configuration on disk")], False),
])
def test_the_last_word_on_a_crash_counts(entries, warns):
    assert warns_of_crash(entries) is warns


def test_reasons_that_differ_in_numbers_are_one():
    predictions = [Prediction("view", "restart", Outlook("unknown", notes), "base")
                   for notes in (("12 surplus pages of 2 MB",), ("7 surplus pages of 2 MB",), ())]
    assert Tally(predictions).reasons() == [("N surplus pages of N MB", 2), (NO_NOTE, 1)]
    assert reason(Outlook("unknown", ("hugetlb.2MB.max", "of pid 3"))) == "hugetlb.2MB.max; of pid N"
    assert reason(Outlook("unknown", ('"/tmp/x-7/data/more.conf" has changed',))) == '"more.conf" has changed'


def test_the_table_has_a_row_for_each_face_and_fits_a_terminal():
    predictions = [Prediction("view, new session", "restart", Outlook("hugetlb"), "base"),
                   Prediction("sidecar", "restart", Outlook("base"), "base"),
                   Prediction("view, new session", "crash", Outlook("unknown", ("why",)), "base")] * 1000
    lines = table(Tally(predictions), "restart").splitlines()
    assert max(map(len, lines)) <= 80 and len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["restart", "answers", "hits", "unknown", "wrong promises", "false alarms"]
    assert cells[2:] == [["view, new session", "1000", "0", "0", "1000", "0"],
                         ["sidecar", "1000", "1000", "0", "0", "0"]]
    [row] = table(Tally(predictions), "crash").splitlines()[2:]
    assert row.split("|")[1:4] == [" view, new session ", "    1000 ", "    0 "]


def test_wrong_are_promises_and_alarms_and_not_what_is_unknown():
    predictions = [Prediction("sidecar", "restart", Outlook("hugetlb"), "base"), Prediction("metric", "restart", Outlook("base"), "hugetlb"),
                   Prediction("worker", "crash", Outlook("unknown"), "base"), Prediction("preflight", "restart", Outlook("base"), "base")]
    assert [prediction.face for prediction in Tally(predictions).false()] == ["sidecar", "metric"]


def test_the_total_is_read_as_it_was_written():
    predictions = [Prediction("sidecar", "restart", Outlook("hugetlb"), "base"), Prediction("metric", "restart", Outlook("base"), "base"),
                   Prediction("metric", "crash", Outlook("unknown"), "base"), Prediction("worker", "crash", Outlook("base"), "base")]
    assert total(Tally(predictions)) == "In all: 4 answers, 2 right, 1 unknown, 1 wrong."
    assert counts(f"2 steps.\n\n{total(Tally(predictions))}\n\nMore.") == ["4", "2", "1", "1"]
    assert counts("2 steps.") == []
