"""A library for shared_preload_libraries, compiled for a test."""

from pathlib import Path

from harness.cluster import Install
from harness.processes import run

HEAD = """
#include "postgres.h"
#include "fmgr.h"
#include <stdio.h>
#include <unistd.h>
PG_MODULE_MAGIC;
void _PG_init(void);
"""


def library(install: Install, directory: Path, init: str) -> Path:
    """Compile a library whose _PG_init has this body, into a directory that the server reads."""
    source, made = directory / "library.c", directory / "library.so"
    source.write_text(f"{HEAD}void _PG_init(void) {{ {init} }}\n")
    run("cc", "-shared", "-fPIC", "-O1", f"-I{install.ask('includedir-server')}", "-o", made, source)
    return made
