"""The host of a walk: a server, a neighbour, a standby, the pools and a control group, and what is done to them."""

import mmap
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg2

from foretell import boot, faces
from foretell.histories import ANYWHERE, Allocation, assert_equal, set_clock_back
from foretell.scores import RANK, Outlook, Prediction, Score
from harness.cgroup import Cgroup
from harness.cluster import Cluster, StartFailed, rows
from harness.poll import until
from harness.preloaded import WATCHED, worker
from harness.processes import children
from harness.prometheus import queried
from harness.reserved_host import ReservedHost
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import GB, KB, MB, pages

BASE = {**WATCHED, "shared_buffers": "32MB", "max_connections": 20, "huge_pages": "try", "min_wal_size": "32MB",
        "max_wal_size": "64MB"}
"""The settings at the beginning of a walk."""

MEMBERS = ("server", "neighbour", "standby")

REPLAY_TIMEOUT = 10
"""Seconds that a standby has to replay; without its primary it tries again after 5 (wal_retrieve_retry_interval)."""

IO_URING = 18
"""The first major with io_method."""

CGROUP_AGE = 1
"""Seconds for which the extension may know an earlier cgroup of the postmaster (docs/reference.md)."""


class FalsePrediction(AssertionError):
    """A false promise or a false alarm."""


class Member:
    """One server of the walk, and what is known of it without asking the project."""

    def __init__(self, name: str, cluster: Cluster) -> None:
        self.name, self.cluster = name, cluster
        self.session: Any = None
        self.allocations: list[Allocation] = []
        self.log_from = 0
        self.log_of_start = 0

    def landed(self) -> str:
        """Where the kernel says that it is; `fails` if it does not run."""
        if not self.cluster.running():
            return "fails"
        mapping = main_mapping(self.cluster.postmaster)
        return mapping.landed_in if mapping.landed_in in RANK else "base"

    def pages(self, page_size: int) -> int:
        """Huge pages of that size that it has now."""
        if not self.cluster.running():
            return 0
        mapping = main_mapping(self.cluster.postmaster)
        return mapping.length // page_size if mapping.page_size == page_size else 0

    def record_landing(self, event: str, *, is_required: bool = True) -> str:
        """Note where it landed, and open the session that will be the old one at the next event."""
        landed = self.landed()
        self.log_from = self.log_of_start
        if landed == "fails":
            self.session = None
            self.allocations.append(Allocation(event, ANYWHERE, ANYWHERE, is_required=False))
            return landed
        mapping = main_mapping(self.cluster.postmaster)
        self.session = self.cluster.connect()
        self.allocations.append(Allocation(event, landed, mapping.page_size, is_required))
        return landed

    def close(self) -> None:
        """Close the old session."""
        if self.session:
            with suppress(psycopg2.Error):
                self.session.close()
        self.session = None


class World:
    """All of it. `predictions` gathers what was foretold, `journal` what was done since the last reset."""

    def __init__(self, host: ReservedHost, state: Path) -> None:
        self.host, self.state = host, state
        self.pools = {size: host.pool(size, 0) for size in (2 * MB, GB)}
        self.group = host.cgroup()
        self.members = {name: Member(name, host.cluster(**BASE)) for name in MEMBERS[:2]}
        self.disk = host.small_disk(self.members["server"].cluster)
        for member in self.members.values():
            create_extension(member.cluster.start())
            member.cluster.stop()
            # Asked once, by the server's program: later the configuration on disk may be broken.
            member.cluster.needs_page_sizes()
            for text in ("include_dir 'conf.d'\n", "include_if_exists 'more.conf'\n"):
                with open(member.cluster.data / "postgresql.conf", "a") as conf:
                    conf.write(text)
            (member.cluster.data / "conf.d").mkdir()
        host.hold(boot.sysctl_file())
        self.held: mmap.mmap | None = None
        self.predictions: list[Prediction] = []
        self.events = 0

    # Between two walks

    def reset(self) -> None:
        """The state in which each walk begins: the server and its neighbour in huge pages, and not a page to spare."""
        self.release_held()
        boot.reserve(None)
        if "standby" in self.members:
            member = self.members.pop("standby")
            member.close()
            member.cluster.remove()
        for member in self.members.values():
            member.close()
            member.cluster.stop("immediate")
            self._restore(member)
            (member.cluster.data / "pg_hugepages.history").unlink(missing_ok=True)
            member.cluster.log_file.write_text("")
            member.allocations, member.log_of_start = [], 0
        self._lift_limits()
        for size, pool in self.pools.items():
            pool.overcommit(0)
            if size == GB:
                pool.resize(0)
        needed = sum(member.cluster.pages_needed(2 * MB) for member in self.members.values())
        self._set_nr(2 * MB, self.pools[2 * MB].numbers().held + needed)
        for member in self.members.values():
            self._start(member, self.group)

    def _lift_limits(self) -> None:
        for kind in ("max", "rsvd.max"):
            for size in ("2MB", "1GB"):
                (self.group.directory / f"hugetlb.{size}.{kind}").write_text("max")

    def _restore(self, member: Member) -> None:
        cluster = member.cluster
        for name in cluster.settings.keys() - BASE.keys() - {"listen_addresses", "unix_socket_directories", "port", "fsync"}:
            cluster.settings[name] = None
        cluster.conf(**BASE)
        (cluster.data / "postgresql.auto.conf").write_text("")
        (cluster.data / "conf.d").mkdir(exist_ok=True)
        for name in ("more.conf", "conf.d/size.conf"):
            (cluster.data / name).unlink(missing_ok=True)

    def check_histories(self) -> None:
        """Each running member's history equals what happened."""
        for member in self.members.values():
            if member.cluster.running():
                assert_equal(member.cluster, member.allocations)

    # The members

    def member(self, name: str) -> Member | None:
        """The member if it runs."""
        member = self.members.get(name)
        return member if member and member.cluster.running() else None

    def make_standby(self) -> None:
        """A standby of the server, in the group and running; once in a walk."""
        upstream = self.member("server")
        if "standby" in self.members or not upstream:
            return
        cluster = self.host.cluster(upstream=upstream.cluster)
        # Rings of all servers of one user count together, and may be too many.
        cluster.conf(primary_conninfo=f"host={upstream.cluster.root} port=5432 user=postgres", io_method=None)
        member = self.members["standby"] = Member("standby", cluster)
        self._start(member, self.group)

    def _start(self, member: Member, within: Cgroup | None) -> str:
        member.log_of_start = len(member.cluster.log())
        with suppress(StartFailed):
            member.cluster.start(within)
        return self._started(member)

    def _started(self, member: Member, *, is_required: bool = True) -> str:
        return member.record_landing("start", is_required=is_required)

    def _within(self, member: Member) -> Cgroup | None:
        """The group that the next start will be in: that of the postmaster."""
        return self.group if member.cluster.postmaster in self.group.members() else None

    def start(self, name: str) -> None:
        """Start a member that does not run, with a configuration that the server accepts."""
        member = self.members.get(name)
        if member and not member.cluster.running() and self._start(member, self.group) == "fails":
            self.repair(member)

    def repair(self, member: Member) -> None:
        """Start a member that failed to start, with the settings of the beginning."""
        self._restore(member)
        if member.name == "standby":
            # It must not have less than its primary, and more pages than a limit on faults allows would kill it.
            member.cluster.conf(max_connections=500)
            self._lift_limits()
        assert self._start(member, self.group) != "fails", member.cluster.log()[-2000:]

    def stop(self, name: str) -> None:
        """Stop a member; what happens before its next start was not foretold."""
        if member := self.member(name):
            member.close()
            member.cluster.stop()

    def renew(self, name: str) -> None:
        """Stop a member that runs, and start it: it has loaded what is on disk, and nothing was reloaded since."""
        if self.member(name):
            self.stop(name)
            self.start(name)

    def move(self, name: str, into: bool) -> None:
        """Move all processes of a member into the group or out of it."""
        if member := self.member(name):
            root = Cgroup(self.group.directory.parent)
            for pid in [member.cluster.postmaster, *children(member.cluster.postmaster)]:
                with suppress(ProcessLookupError):
                    (self.group if into else root).join(pid)
            time.sleep(CGROUP_AGE)

    # The pool

    def _set_nr(self, size: int, nr: int) -> None:
        """What the kernel finds of it, without more than one attempt."""
        (self.pools[size].directory / "nr_hugepages").write_text(str(max(nr, 0)))

    def needed(self, member: Member) -> int:
        """Pages of 2 MB that its next start takes, by the server's program as far as it answers."""
        [row] = rows(member.session, "SELECT pages_needed, page_size FROM hugepage_preflight()")
        own = pages(main_mapping(member.cluster.postmaster).length, 2 * MB)
        return row["pages_needed"] if row["pages_needed"] and row["page_size"] != GB else own

    def others(self, member: Member) -> int:
        """Pages of 2 MB that all but this member hold."""
        return self.pools[2 * MB].numbers().held - member.pages(2 * MB)

    def pool_for(self, name: str, spare: int | None) -> None:
        """Exactly what the next start of a member needs and so many more; None: nothing but what others hold."""
        if member := self.member(name):
            self._set_nr(2 * MB, self.others(member) + (0 if spare is None else self.needed(member) + spare))

    def pool_of_running(self, name: str, spare: int) -> None:
        """The same for what runs: what a crash needs."""
        if member := self.member(name):
            running = pages(main_mapping(member.cluster.postmaster).length, 2 * MB)
            self._set_nr(2 * MB, self.others(member) + running + spare)

    def gigantic(self, count: int) -> None:
        """The pool of 1 GB pages."""
        self._set_nr(GB, count)

    def demote(self) -> None:
        """One page of 1 GB becomes 512 of 2 MB."""
        with suppress(OSError):
            (self.pools[GB].directory / "demote").write_text("1")

    def overcommit(self, count: int) -> None:
        """Surplus pages of 2 MB that the kernel may find."""
        self.pools[2 * MB].overcommit(count)

    def hold(self, count: int) -> None:
        """Reserve pages for this process, or as many as there are."""
        self.release_held()
        count = min(count, self.pools[2 * MB].numbers().available)
        if count > 0:
            with suppress(OSError):
                self.held = self.pools[2 * MB].reserve(count)

    def release_held(self) -> None:
        """Give them back."""
        if self.held:
            self.held.close()
        self.held = None

    def limit(self, name: str, kind: str, spare: int | None) -> None:
        """A limit of the group: what the next start of a member needs and so many pages more; None: no limit. The kernel
        refuses a limit on reservations below what is reserved."""
        member = self.member(name)
        if member:
            value = "max" if spare is None else str(max(self.needed(member) + spare, 1) * 2 * MB)
            with suppress(OSError):
                (self.group.directory / f"hugetlb.2MB.{kind}").write_text(value)

    def io_method(self, method: str | None) -> None:
        """The method of the server alone, on disk."""
        member = self.members["server"]
        if member.cluster.install.major >= IO_URING:
            member.cluster.conf(io_method=method)

    # The next boot

    def running(self) -> list[Member]:
        """Those that run, the standby last."""
        return [member for member in self.members.values() if member.cluster.running()]

    def reserve_at_boot(self, spare: int | None) -> None:
        """What all that run need and so many more; None: the file sets nothing."""
        boot.reserve(None if spare is None else max(sum(map(self.needed, self.running())) + spare, 0))

    def reboot(self) -> None:
        """Foretell, stop all, set the pools as the boot does, start all, and compare. Only of a server whose restart would land
        in pages of 2 MB something is foretold: nothing but the pool can be in its way."""
        if not boot.SYSCTL.exists():
            return
        members = self.running()
        needs = {member.name: self.needed(member) for member in members}
        outlooks = {member.name: self._foretell_boot(member, needs) for member in members}
        groups = {member.name: self._within(member) for member in members}
        for member in reversed(members):
            member.close()
            member.cluster.stop()
        self.release_held()
        for pool in self.pools.values():
            pool.overcommit(0)
            (pool.directory / "nr_hugepages").write_text("0")
        # What others of this host hold, they would not hold after a boot.
        others = self.pools[2 * MB].numbers().held
        self._set_nr(2 * MB, boot.apply() + others)
        landed = {member.name: self._start(member, groups[member.name]) for member in members}
        for member in members:
            self._compare(member, "boot", outlooks[member.name], landed[member.name])

    def _foretell_boot(self, member: Member, needs: dict[str, int]) -> dict[str, Outlook]:
        # Reads anew what sets the pool at the next boot.
        [start] = rows(member.session, "SELECT page_size FROM hugepage_preflight()")
        [row] = rows(member.session, "SELECT huge_pages, restart_outlook FROM hugepage_status")
        if (row["restart_outlook"], start["page_size"]) != ("hugetlb", 2 * MB):
            return {}
        settings = member.cluster.sql("SELECT setting FROM pg_file_settings WHERE name = 'huge_pages' ORDER BY seqno DESC")
        alarm = "fails" if (settings[0]["setting"] if settings else row["huge_pages"]) == "on" else "base"
        own, everyone = needs[member.name], sum(needs.values())
        sidecar = boot.of_sidecar(own, everyone, alarm)
        return {"view, old session": faces.of_view(member.session, "boot"), "sidecar": sidecar}

    # The configuration

    def configure(self, name: str, **settings: Any) -> None:
        """Settings on disk, nothing reloaded."""
        if member := self.members.get(name):
            member.cluster.conf(**settings)

    def include(self, name: str, file: str, text: str | None) -> None:
        """A file that is included comes or goes."""
        if member := self.members.get(name):
            path = member.cluster.data / file
            path.parent.mkdir(exist_ok=True)
            if text is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(text)

    def exchange(self, name: str, text: str | None) -> None:
        """Restart, and put another directory in the place of the one that is included, or none. It is older than the start."""
        if member := self.members.get(name):
            included, other, old = (member.cluster.data / directory for directory in ("conf.d", "conf.other", "conf.old"))
            if text is not None:
                other.mkdir()
                (other / "size.conf").write_text(text)
            self.renew(name)
            if included.exists():
                included.rename(old)
                shutil.rmtree(old)
            if text is not None:
                other.rename(included)

    def alter_system(self, name: str, statement: str) -> None:
        """ALTER SYSTEM."""
        if member := self.member(name):
            member.cluster.sql(f"ALTER SYSTEM {statement}")

    def reload(self, name: str) -> None:
        """SIGHUP to the postmaster."""
        if member := self.member(name):
            os.kill(member.cluster.postmaster, signal.SIGHUP)

    # The events

    def look(self, name: str) -> None:
        """Every view, in the old session."""
        if member := self.member(name):
            for event in ("restart", "crash"):
                faces.of_view(member.session, event)

    def foretell(self, member: Member, event: str) -> dict[str, Outlook]:
        """What every face says before it."""
        if member.name == "standby":
            self._await_replay(member)
        cluster, old = member.cluster, member.session
        outlooks = {}
        new = cluster.connect()
        # Until it is asked, what only the server's program can tell is unknown; its answer is for all faces.
        [row] = rows(new, "SELECT * FROM hugepage_preflight()")
        view = faces.of_view(new, event)
        worker_outlook = faces.of_worker(cluster, event, view, member.log_from)
        outlooks["view, old session"] = faces.of_view(old, event)
        outlooks["view, new session"] = faces.of_view(new, event)
        if event == "restart":
            outlooks["preflight"] = faces.of_preflight(row, view.notes)
        outlooks["metric"] = faces.of_metrics(queried(new), str(cluster.data), event, view.notes)
        new.close()
        if worker_outlook:
            outlooks["worker"] = worker_outlook
        outlooks["sidecar"] = faces.of_sidecar(cluster, event, "--state-dir", str(self.state))
        return outlooks

    def _await_replay(self, standby: Member) -> None:
        """Until it has replayed all of its primary, whose settings may be more than it has: a part of the faces would speak of
        the time before. It may never: its primary may have dropped what it lacks."""
        upstream = self.member("server")
        if not upstream:
            return
        [written] = upstream.cluster.sql("SELECT pg_current_wal_flush_lsn()::text AS lsn")
        is_done = """SELECT current_setting('primary_conninfo') = '' OR pg_is_wal_replay_paused()
                         OR pg_last_wal_replay_lsn() >= %s::pg_lsn AS is_done"""
        with suppress(TimeoutError):
            until("the standby to replay", lambda: standby.cluster.sql(is_done, written["lsn"])[0]["is_done"], REPLAY_TIMEOUT)

    def restart(self, name: str) -> None:
        """Foretell, stop, start, and compare."""
        if member := self.member(name):
            within = self._within(member)
            outlooks = self.foretell(member, "restart")
            member.close()
            member.cluster.stop()
            self._compare(member, "restart", outlooks, self._start(member, within))

    def crash(self, name: str, victim: str) -> None:
        """Foretell, kill a backend or the worker with SIGKILL, wait until the server is up again or has ended, and compare."""
        member = self.member(name)
        if not member:
            return
        outlooks = self.foretell(member, "crash")
        cluster = member.cluster
        member.close()
        member.log_of_start = len(cluster.log())
        session, bystander = cluster.connect(), cluster.connect()
        pid = worker(cluster) if victim == "worker" else None
        os.kill(pid or session.info.backend_pid, signal.SIGKILL)
        until("the crash to end the other sessions", lambda: not _answers(bystander))
        cluster.recovers(member.log_of_start, 60)
        self._compare(member, "crash", outlooks, member.record_landing("crash restart"))

    def clock_back(self, name: str, days: int) -> None:
        """Stop a member, make its records later than now, and start it."""
        member = self.member(name)
        if member:
            within = self._within(member)
            member.close()
            member.cluster.stop()
            set_clock_back(member.cluster, days)
            if self._start(member, within) == "fails":
                self.repair(member)

    def restart_on_a_full_disk(self) -> None:
        """Foretell, stop, fill the disk but for one block, start, and compare. The record may be missing, nothing else; a
        server that does not start for want of space was not spoken of."""
        if member := self.member("server"):
            within = self._within(member)
            outlooks = self.foretell(member, "restart")
            member.close()
            member.cluster.stop()
            # PostgreSQL itself needs one block, for postmaster.pid.
            self.disk.fill(leave=4 * KB)
            member.log_of_start = len(member.cluster.log())
            try:
                with suppress(StartFailed):
                    member.cluster.start(within)
            finally:
                self.disk.empty()
            # With a full disk no session can write its init file.
            landed = self._started(member, is_required=False)
            if landed == "fails" and "No space left on device" in member.cluster.log()[member.log_of_start:]:
                self.repair(member)
            else:
                self._compare(member, "restart", outlooks, landed)

    def _compare(self, member: Member, event: str, outlooks: dict[str, Outlook], landed: str) -> None:
        self.events += 1
        predictions = [Prediction(face, event, outlook, landed) for face, outlook in outlooks.items()]
        self.predictions += predictions
        wrong = [prediction for prediction in predictions if prediction.score in (Score.FALSE_PROMISE, Score.FALSE_ALARM)]
        if landed == "fails":
            self.repair(member)
        if wrong:
            raise FalsePrediction(f"{event} of the {member.name} landed in {landed}; " +
                                  "; ".join(f"{prediction.face} foretold {prediction.outlook.lands_in}" for prediction in wrong))


def _answers(session: Any) -> bool:
    try:
        return bool(rows(session, "SELECT 1"))
    except psycopg2.Error:
        return False
