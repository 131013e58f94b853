"""Alert logs for stand-ins: the messages of an Oracle start, at any time, in both formats."""

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from harness.processes import status
from harness.units import MB


def started(pid: int) -> datetime:
    """When a process started, in UTC, to the second."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    boot = time.time() - float(Path("/proc/uptime").read_text().split()[0])
    return datetime.fromtimestamp(boot + ticks / 100, timezone.utc)


def of_11_2(pmon: int, sga: int, in_huge_pages: int, setting: str = "TRUE", age: timedelta = timedelta(),
            version: str = "11.2.0.4.0") -> str:
    """11.2.0.3 and .4: times without a zone, and the block of large pages."""
    at = (started(pmon) - age).astimezone()
    when = f"{at:%a %b %d %H:%M:%S %Y}\n"
    return (f"{when}Starting ORACLE instance (normal)\n"
            "************************ Large Pages Information *******************\n"
            "Per process system memlock (soft) limit = UNLIMITED\n"
            f"{when}"
            f"Total Shared Global Region in Large Pages = {in_huge_pages // MB} MB ({in_huge_pages * 100 // sga}%)\n"
            f"Large Pages used by this instance: {in_huge_pages // (2 * MB)} ({in_huge_pages // MB} MB)\n"
            "Large Pages unused system wide = 0 (0 KB)\n"
            "Large Pages configured system wide = 9216 (18 GB)\n"
            "Large Page size = 2048 KB\n"
            f"Total Shared Global Region size is {sga // MB} MB.\n"
            "********************************************************************\n"
            f"Oracle Database 11g Enterprise Edition Release {version} - 64bit Production.\n"
            "System parameters with non-default values:\n"
            "  processes                = 150\n"
            f'  use_large_pages          = "{setting}"\n'
            f"  sga_target               = {sga // MB}M\n"
            f"{when}PMON started with pid=2, OS id={_in_its_namespace(pmon)} \n")


def of_19(pmon: int, expected: int, allocated: int, small: int, setting: str = "TRUE",
          age: timedelta = timedelta(), version: str = "19.0.0.0.0") -> str:
    """12.2 and later: times with their offset, and the table of page sizes; pages of 2 MB, and small ones of 4 kB."""
    stamp = f"{started(pmon) - age:%Y-%m-%dT%H:%M:%S.%f+00:00}\n"
    return (f"{stamp}Starting ORACLE instance (normal) (OS id: {pmon - 1})\n"
            f"{stamp}{'*' * 70}\n"
            f"{stamp}Dump of system resources acquired for SHARED GLOBAL AREA (SGA) \n\n"
            f"{stamp} Per process system memlock (soft) limit = UNLIMITED\n"
            f"{stamp} Supported system pagesize(s):\n"
            f"{stamp}  PAGESIZE  AVAILABLE_PAGES  EXPECTED_PAGES  ALLOCATED_PAGES  ERROR(s)\n"
            f"{stamp}        4K       Configured               3  {small:>15}        NONE\n"
            f"{stamp}     2048K  {allocated:>15} {expected:>15} {allocated:>16}        NONE\n"
            f"{stamp}{'*' * 70}\n"
            f"{stamp}Oracle Database 19c Enterprise Edition Release {version} - Production\n"
            "Version 19.24.0.0.0\n"
            f"{stamp}System parameters with non-default values:\n"
            f'  use_large_pages          = "{setting}"\n'
            f"{stamp}PMON started with pid=2, OS id={pmon}\n")


def _in_its_namespace(pid: int) -> int:
    return int(status(pid)["NSpid"].split()[-1])
