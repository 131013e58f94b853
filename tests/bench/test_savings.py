"""`./dev bench --only benefit`: predicted and real savings side by side, from numbers that need no server."""

import pytest

import benefit


def rows_of_benefit(**figures: tuple[float, float]) -> dict:
    """Rows of hugepage_benefit by figure: in base pages and in pages of 2 MB."""
    rows = {name: {"base": base, "huge_2mb": huge, "confidence": "measured"} for name, (base, huge) in figures.items()}
    return rows | {"summary": {"detail": "It is worth it."}}


def test_savings_of_sessions():
    load = benefit.Load("all", 8, 10.0, benefit.touching)
    predicted = rows_of_benefit(fault_cpu=(0.05, 0.01), warm_up=(0.020, 0.001), exit=(0.005, 0), page_tables=(900, 200), page_tables_freed=(0, 700))
    measured = {"base": {"work": 1.0, "again": 0.5, "warm_up": 0.021, "exit": 0.007, "page_tables": 900},
                "2 MB": {"work": 0.4, "again": 0.2, "warm_up": 0.001, "exit": 0.001, "page_tables": 250}}
    result = benefit.compared(load, "2 MB", predicted, measured)
    assert result["faults"] == {"of": 1.0, "predicted": pytest.approx(0.4), "real": pytest.approx(0.3)}
    assert result["again"] == {"of": 0.5, "predicted": None, "real": pytest.approx(0.3)}
    assert result["warm_up"] == {"predicted": pytest.approx(0.019), "real": pytest.approx(0.020)}
    assert result["exit"] == {"predicted": pytest.approx(0.005), "real": pytest.approx(0.006)}
    assert result["page_tables"] == {"predicted": 200, "real": 250}
    assert result["page_tables_freed"] == {"predicted": 700, "real": 650}
    table = benefit.table([result, {"pages": "1 GB", "skipped": "no huge pages"}])
    assert "1 GB pages skipped: no huge pages" in table and "all: It is worth it." in table
    [line] = [line for line in table.splitlines() if "faults, ms of 1e+03" in line]
    assert line.split()[-3:] == ["400", "300", "0.75"]
    [line] = [line for line in table.splitlines() if "again, ms of 500" in line]
    assert line.split()[-3:] == ["-", "300", "-"]
    longest = benefit.table([{**result, "load": benefit.loads(quick=False)[-1].name, "summary": ""}])
    assert max(map(len, longest.splitlines())) <= 80


def test_savings_of_a_transaction():
    """pgbench runs for two seconds more than it is observed, so fewer transactions are observed than it reports."""
    load = benefit.Load("pgbench", 4, 10.0, benefit.pgbench)
    measured = {"base": {"work": 6.0, "units": 1200}, "2 MB": {"work": 6.0, "units": 1500}}
    result = benefit.compared(load, "2 MB", rows_of_benefit(fault_cpu=(0.2, 0.1)), measured)
    assert result["cpu"] == {"of": 0.005, "predicted": pytest.approx(0.001), "real": pytest.approx(0.001)}
    assert "warm_up" not in result


def test_no_ratio_of_noise():
    """A saving that is far below what two runs differ by is compared with nothing."""
    assert benefit.line({"of": 0.005, "predicted": 0.00001, "real": 0.002}, 1e-3, "CPU, ms of {:.3g}").split()[-3:] == ["0.01", "2", "-"]
