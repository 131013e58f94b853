"""A random walk as a state machine of Hypothesis: each rule is one step, and a failing walk shrinks to the shortest."""

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from foretell.world import MEMBERS, World

names = st.sampled_from(MEMBERS)
servers = st.sampled_from(MEMBERS[:2])
spares = st.sampled_from([0, -1, 1, None, 20])
at_boot = st.sampled_from([None, -1000, 0, 0, -1, 1])

LENGTH = 20
"""Steps of one walk, the restarts and crashes at its end not counted."""

CONFIGURATIONS: list[dict[str, Any]] = [
    {"shared_buffers": "64MB"}, {"shared_buffers": "16MB"}, {"shared_buffers": "32MB"}, {"shared_buffers": "200MB"},
    {"huge_pages": "on"}, {"huge_pages": "try"}, {"huge_pages": "off"},
    {"huge_page_size": "1GB"}, {"huge_page_size": "2MB"}, {"huge_page_size": "16MB"}, {"huge_page_size": None},
    {"max_connections": 200}, {"max_connections": 10}, {"max_connections": 20},
    {"shared_memory_type": "sysv"}, {"shared_memory_type": None}, {"work_mem": "8MB"},
    {"shared_preload_libraries": "nonesuch"}, {"shared_preload_libraries": "pg_hugepages"},
    {"no_such_setting": "1"}, {"no_such_setting": None}, {"wal_level": "minimal"}, {"wal_level": None},
]
"""Changes of the file; None takes a setting out of it."""

INCLUDED = ["shared_buffers = 48MB\n", "huge_pages = on\n", "huge_page_size = 1GB\n", "max_connections = many\n",
            "include 'nonesuch.conf'\n", "shared_buffers = 32MB # as before\n", None]
STATEMENTS = ["SET shared_buffers = '80MB'", "SET huge_pages = 'on'", "SET huge_page_size = '1GB'", "SET max_connections = 100",
              "RESET shared_buffers", "RESET ALL"]


class Walk(RuleBasedStateMachine):
    """Each step is one thing that an administrator, a neighbour, the kernel or an accident does to a server."""

    world: ClassVar[World]
    steps: ClassVar[int] = 0
    shrinking: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[str] = []
        self.failure: Exception | None = None
        self.world.reset()

    def step(self, method: Any, *arguments: Any, **named: Any) -> None:
        """Take one step; a walk that has failed is not judged any more."""
        Walk.steps += 1
        words = [repr(value) for value in arguments] + [f"**{named!r}"] * bool(named)
        self.journal.append(f"world.{method.__name__}({', '.join(words)})")
        try:
            method(*arguments, **named)
        except Exception as error:
            self.failure = error
            raise

    @rule(of=names, spare=spares)
    def pool(self, of: str, spare: int | None) -> None:
        self.step(self.world.pool_for, of, spare)

    @rule(of=names, spare=st.sampled_from([0, -1, 1]))
    def pool_for_what_runs(self, of: str, spare: int) -> None:
        self.step(self.world.pool_of_running, of, spare)

    @rule(count=st.integers(0, 2))
    def gigantic_pages(self, count: int) -> None:
        self.step(self.world.gigantic, count)

    @rule()
    def demote(self) -> None:
        self.step(self.world.demote)

    @rule(count=st.sampled_from([0, 1, 20, 200]))
    def overcommit(self, count: int) -> None:
        self.step(self.world.overcommit, count)

    @rule(count=st.sampled_from([0, 1, 10, 40]))
    def hold(self, count: int) -> None:
        self.step(self.world.hold, count)

    @rule(of=names, kind=st.sampled_from(["rsvd.max", "max"]), spare=st.sampled_from([None, 0, -1, 1, 20, 40]))
    def limit(self, of: str, kind: str, spare: int | None) -> None:
        self.step(self.world.limit, of, kind, spare)

    @rule(method=st.sampled_from(["io_uring", "io_uring", "worker", None]))
    def io_method(self, method: str | None) -> None:
        self.step(self.world.io_method, method)

    @rule(spare=at_boot)
    def reserve_at_boot(self, spare: int | None) -> None:
        self.step(self.world.reserve_at_boot, spare)

    @rule(spare=at_boot)
    def reboot(self, spare: int | None) -> None:
        self.step(self.world.reserve_at_boot, spare)
        self.step(self.world.reboot)

    @rule(of=names, into=st.booleans())
    def move(self, of: str, into: bool) -> None:
        self.step(self.world.move, of, into)

    def change(self, of: str, is_renewed: bool) -> None:
        """What comes before a change: a restart, so that nothing was reloaded since, or nothing."""
        if is_renewed:
            self.step(self.world.renew, of)

    @rule(of=names, settings=st.sampled_from(CONFIGURATIONS), is_renewed=st.booleans())
    def configure(self, of: str, settings: dict[str, Any], is_renewed: bool) -> None:
        self.change(of, is_renewed)
        self.step(self.world.configure, of, **settings)

    @rule(of=servers, file=st.sampled_from(["more.conf", "conf.d/size.conf"]), text=st.sampled_from(INCLUDED), is_renewed=st.booleans())
    def include(self, of: str, file: str, text: str | None, is_renewed: bool) -> None:
        self.change(of, is_renewed)
        self.step(self.world.include, of, file, text)

    @rule(of=servers, text=st.sampled_from(INCLUDED))
    def exchange(self, of: str, text: str | None) -> None:
        self.step(self.world.exchange, of, text)

    @rule(of=names, statement=st.sampled_from(STATEMENTS), is_renewed=st.booleans())
    def alter_system(self, of: str, statement: str, is_renewed: bool) -> None:
        self.change(of, is_renewed)
        self.step(self.world.alter_system, of, statement)

    @rule(of=names)
    def reload(self, of: str) -> None:
        self.step(self.world.reload, of)

    @rule(of=names)
    def look(self, of: str) -> None:
        self.step(self.world.look, of)

    @rule()
    def standby(self) -> None:
        self.step(self.world.make_standby)

    @rule(of=names)
    def restart(self, of: str) -> None:
        self.step(self.world.restart, of)

    @rule(of=names, victim=st.sampled_from(["backend", "worker"]))
    def crash(self, of: str, victim: str) -> None:
        self.step(self.world.crash, of, victim)

    @rule(of=names)
    def stop(self, of: str) -> None:
        self.step(self.world.stop, of)

    @rule(of=names)
    def start(self, of: str) -> None:
        self.step(self.world.start, of)

    @rule(of=servers, days=st.sampled_from([1, 4000]))
    def clock_back(self, of: str, days: int) -> None:
        self.step(self.world.clock_back, of, days)

    @rule()
    def restart_on_a_full_disk(self) -> None:
        self.step(self.world.restart_on_a_full_disk)

    def teardown(self) -> None:
        """Each walk ends with a restart and a crash of each that runs, and with a look at the histories. Hypothesis begins with
        short walks, which end without."""
        if not self.failure and (self.shrinking or len(self.journal) >= LENGTH):
            try:
                finish(self.world)
            except Exception as error:
                self.failure = error
                raise


def finish(world: World) -> None:
    """What each walk ends with."""
    for name in MEMBERS:
        world.restart(name)
        world.crash(name, "backend")
    world.check_histories()
