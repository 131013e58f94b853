/*
 * What the bench runs inside the server.
 *
 * touch_shared_buffers: faults the whole buffer pool in, without a file of that size to read.
 * read_status_files: the bare reads below hugepage_backends: /proc/PID/status of the postmaster and of its children.
 * Returns the sum of their page tables (VmPTE) in bytes, as a proof that they were read.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(touch_shared_buffers);
PG_FUNCTION_INFO_V1(read_status_files);

Datum
touch_shared_buffers(PG_FUNCTION_ARGS)
{
    const volatile char *pool = BufferBlocks;
    size_t      size = (size_t) NBuffers * BLCKSZ;
    size_t      page = sysconf(_SC_PAGESIZE);

    for (size_t offset = 0; offset < size; offset += page)
    {
        (void) pool[offset];
        CHECK_FOR_INTERRUPTS();
    }
    PG_RETURN_VOID();
}

/* What the first read of a file of /proc returns, or all reads; empty if its process has ended. */
static void
read_file(const char *path, char *text, size_t size, bool whole)
{
    int         file = open(path, O_RDONLY | O_CLOEXEC);
    size_t      length = 0;
    ssize_t     got;

    do
    {
        got = file < 0 ? 0 : read(file, text + length, size - 1 - length);
        length += Max(got, 0);
    } while (whole && got > 0);
    text[length] = '\0';
    if (file >= 0)
        close(file);
}

static unsigned long
page_tables(long pid)
{
    char        path[64],
                text[8192];
    const char *found;

    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    read_file(path, text, sizeof text, false);
    found = strstr(text, "\nVmPTE:");
    return found ? strtoul(found + strlen("\nVmPTE:"), NULL, 10) * 1024 : 0;
}

Datum
read_status_files(PG_FUNCTION_ARGS)
{
    static char children[1 << 20];
    char        path[64],
               *next = children,
               *end;
    unsigned long sum = page_tables(PostmasterPid);

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", PostmasterPid, PostmasterPid);
    read_file(path, children, sizeof children, true);
    for (long pid = strtol(next, &end, 10); end != next; pid = strtol(next, &end, 10))
    {
        sum += page_tables(pid);
        next = end;
    }
    PG_RETURN_INT64(sum);
}
