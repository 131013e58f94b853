/*
 * The bare floor below our views: the same files opened, read, closed and parsed, and nothing else.
 *
 *   floor status TIMES POOL-DIRECTORY    /proc/meminfo, the pool's five counters, one PROCMAP_QUERY
 *   floor backends TIMES PID...          VmPTE in /proc/PID/status of each
 *
 * Prints, for one round, the median of TIMES rounds in nanoseconds, and the sum of what was read last (bytes of page
 * tables, pages) as a proof that it was.
 */
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* As in linux/fs.h since 6.11, for systems whose headers are older than their kernel. */
struct query
{
    __u64 size, flags, address, start, end, vma_flags, page_size, offset, inode;
    __u32 major, minor, name_size, build_id_size;
    __u64 name, build_id;
};
#define ASK_FOR_MAPPING _IOWR('f', 17, struct query)

static const char *const counters[] = {
    "nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages"
};
enum { COUNTERS = sizeof counters / sizeof *counters };

static char counter_paths[COUNTERS][512];
static char text[16384];

static int slurp(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);

    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static unsigned long after(const char *label)
{
    const char *place = strstr(text, label);

    return place ? strtoul(place + strlen(label), NULL, 10) : 0;
}

/* The name goes into a buffer, as whoever shows it must have it. */
static unsigned long mapping_page_size(const void *address)
{
    char name[256];
    struct query query = {.size = sizeof query, .address = (__u64) (unsigned long) address,
                          .name = (__u64) (unsigned long) name, .name_size = sizeof name};
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    if (file < 0 || ioctl(file, ASK_FOR_MAPPING, &query) != 0)
    {
        perror("PROCMAP_QUERY (Linux 6.11)");
        exit(1);
    }
    close(file);
    return query.page_size;
}

static unsigned long status(void)
{
    unsigned long sum = mapping_page_size(text);

    if (slurp("/proc/meminfo"))
        sum += after("MemTotal:") + after("\nPageTables:") + after("\nShmemPmdMapped:") + after("\nHugepagesize:") +
               after("\nHugetlb:");
    for (int i = 0; i < COUNTERS; i++)
        if (slurp(counter_paths[i]))
            sum += strtoul(text, NULL, 10);
    return sum;
}

static unsigned long backends(char **pids, int count)
{
    unsigned long sum = 0;
    char path[64];

    for (int i = 0; i < count; i++)
    {
        snprintf(path, sizeof path, "/proc/%s/status", pids[i]);
        if (slurp(path))
            sum += after("\nVmPTE:") * 1024;
    }
    return sum;
}

static long nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    long left = *(const long *) a, right = *(const long *) b;

    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    int is_status = argc > 3 && strcmp(argv[1], "status") == 0;
    long times = argc > 3 ? atol(argv[2]) : 0, *took = calloc(times > 0 ? times : 1, sizeof *took);
    unsigned long sum = 0;

    if (times < 1 || !took || (!is_status && strcmp(argv[1], "backends") != 0))
    {
        fprintf(stderr, "usage: floor status TIMES POOL-DIRECTORY | floor backends TIMES PID...\n");
        return 64;
    }
    for (int i = 0; i < COUNTERS; i++)
        snprintf(counter_paths[i], sizeof counter_paths[i], "%s/%s", argv[3], counters[i]);
    for (long i = 0; i < times; i++)
    {
        long began = nanoseconds();

        sum = is_status ? status() : backends(argv + 3, argc - 3);
        took[i] = nanoseconds() - began;
    }
    qsort(took, times, sizeof *took, ascending);
    printf("%ld %lu\n", took[times / 2], sum);
    return 0;
}
