"""A FUSE file system that answers what leads to one file, and never a read of it. Run as a program, by root: it is the server of the file
system. With `fault` its child has its command line in that file; with `directory` it does not even say which files there are.
"""

import ctypes
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FILE = "silent.conf"
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, INIT, OPENDIR, INTERRUPT = 1, 2, 3, 14, 15, 17, 18, 26, 27, 36
SIZE = 4096


def attributes(inode: int, owner: int) -> bytes:
    mode = 0o40755 if inode == 1 else 0o100755
    return struct.pack("<QQQQQQIIIIIIIIII", inode, SIZE, 8, 0, 0, 0, 0, 0, 0, mode, 1, owner, owner, 0, 4096, 0)


def reply(operation: int, inode: int, name: bytes, owner: int) -> bytes | int | None:
    """What is answered: content, or an errno; nothing at all to a read."""
    if operation == INIT:
        return struct.pack("<IIIIHHIIHHII24x", 7, 31, 0, 0, 12, 12, SIZE, 1, 1, 0, 0, 0)
    if operation == GETATTR:
        return struct.pack("<QII", 1, 0, 0) + attributes(inode, owner)
    if operation == LOOKUP:
        return 2 if name != FILE.encode() else struct.pack("<QQQQII", 2, 1, 1, 1, 0, 0) + attributes(2, owner)
    if operation == STATFS:
        return struct.pack("<QQQQQIIII24x", 1, 0, 0, 2, 0, SIZE, 255, SIZE, 0)
    if operation in (OPEN, OPENDIR):
        return struct.pack("<QII", 1, 0, 0)
    return None if operation == READ else 0 if operation == RELEASE else 38


def serve(device: int, owner: int, errors: int, is_mute: bool, waits: int) -> None:
    """The first reads get an error: the kernel then tries again with the memory map locked. If it `is_mute`, nothing is answered.
    `waits` gets a byte for each read that waits."""
    while True:
        request = os.read(device, 1 << 17)
        _, operation, unique, inode = struct.unpack("<IIQQ", request[:24])
        if operation in (FORGET, INTERRUPT):
            continue
        if is_mute and operation != INIT:
            continue
        answer = reply(operation, inode, request[40:].rstrip(b"\0"), owner)
        if operation == READ and errors:
            answer, errors = 5, errors - 1
        elif operation == READ:
            os.write(waits, b".")
        if answer is not None:
            content = answer if isinstance(answer, bytes) else b""
            error = -answer if isinstance(answer, int) else 0
            os.write(device, struct.pack("<IiQ", 16 + len(content), error, unique) + content)


def fault(path: Path, waits: int) -> None:
    """Become a process `postgres` whose memory map is locked for ever: a thread waits for a page of the file, and another one changes the mapping."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(15, b"postgres")
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address = libc.mmap(None, SIZE, 1, 2, os.open(path, os.O_RDONLY), 0)
    threading.Thread(target=libc.memchr, args=(ctypes.c_void_p(address), 0, 1), daemon=True).start()
    os.read(waits, 1)
    print(os.getpid(), flush=True)
    libc.mprotect(ctypes.c_void_p(address), SIZE, 3)


def main() -> None:
    directory, owner, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={owner},group_id={owner},allow_other"
    if libc.mount(b"silent", str(directory).encode(), b"fuse.silent", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    read, write = os.pipe()
    if kind == "fault" and not os.fork():
        os.close(device)
        os.setgid(owner)
        os.setuid(owner)
        fault(directory / FILE, read)
    elif kind in ("file", "directory"):
        print(os.getpid(), flush=True)
    serve(device, owner, 1 if kind == "fault" else 0, kind == "directory", write)


@dataclass(frozen=True)
class Silent:
    """What does not answer: the file, and a process; with "file" it is the server of the file system."""

    file: Path
    pid: int


@contextmanager
def mounted(directory: Path, owner: int, kind: str = "file") -> Iterator[Silent]:
    """The file that nobody can read; with `kind` "fault" a process whose memory map is locked, with "directory" nothing answers there."""
    process = subprocess.Popen([sys.executable, __file__, directory, str(owner), kind], stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        yield Silent(directory / FILE, int(process.stdout.readline()))
    finally:
        # A process that waits for the file system ends with its server.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        subprocess.run(["umount", "--lazy", directory], check=True)


if __name__ == "__main__":
    main()
