/*
 * The bare floor below our views: the same system calls and the numbers in what they return, and nothing else.
 *
 *   floor kept TIMES FILE... [-- FILE...]    /proc/meminfo and other FILEs that stay open, and PROCMAP_QUERY for a mapping
 *                                            and the next one; behind --, also the memory that is reserved for an
 *                                            answer, and a stat of each FILE
 *   floor opened TIMES FILE... [-- FILE...]  the same, where each FILE is opened and closed
 *   floor backends TIMES PID...              the children of the first, and VmPTE in /proc/PID/status of each
 *
 * Prints, for one round, the median of TIMES rounds in nanoseconds, and the sum of what was read last (bytes of page
 * tables, pages) as a proof that it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As in linux/fs.h since 6.11, for systems whose headers are older than their kernel. */
struct query
{
    __u64 size, flags, address, vma_start, vma_end, vma_flags, page_size, offset, inode;
    __u32 major, minor, name_size, build_id_size;
    __u64 name, build_id;
};
#define ASK_FOR_MAPPING _IOWR('f', 17, struct query)

enum { FILES = 32, RESERVE = 8 << 20 };

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

static int must_open(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
    {
        perror(path);
        exit(1);
    }
    return file;
}

/* The name goes into a buffer, where there is one. */
static struct query mapping(int file, unsigned long address, char *name, __u32 name_size)
{
    struct query query = {.size = sizeof query, .address = address,
                          .name = (__u64) (unsigned long) name, .name_size = name_size};

    if (ioctl(file, ASK_FOR_MAPPING, &query) != 0 && errno != ENOENT)
    {
        perror("PROCMAP_QUERY (Linux 6.11)");
        exit(1);
    }
    return query;
}

/* Whoever shows the segment must have its name. The kernel may have split it, so that the next mapping counts too. */
static unsigned long whole_mapping(int file, unsigned long address)
{
    char name[4096];
    struct query found = mapping(file, address, name, sizeof name);

    return found.page_size + mapping(file, found.vma_end, NULL, 0).page_size;
}

/* The numbers of /proc/meminfo, or the one number, or word, of another file. */
static unsigned long numbers(const char *path)
{
    if (strcmp(path, "/proc/meminfo") == 0)
        return after("MemTotal:") + after("\nPageTables:") + after("\nShmemPmdMapped:") + after("\nHugepagesize:") +
               after("\nHugePages_Free:") + after("\nHugetlb:");
    return strtoul(text, NULL, 10) + (strchr(text, '[') != NULL);
}

static unsigned long kept(const int *files, char **paths, int count, int maps, const void *address)
{
    unsigned long sum = whole_mapping(maps, (unsigned long) address);

    for (int i = 0; i < count; i++)
    {
        ssize_t length = pread(files[i], text, sizeof text - 1, 0);

        text[length > 0 ? length : 0] = '\0';
        sum += numbers(paths[i]);
    }
    return sum;
}

static unsigned long opened(char **paths, int count, const void *address)
{
    int maps = must_open("/proc/self/maps");
    unsigned long sum = whole_mapping(maps, (unsigned long) address);

    close(maps);
    for (int i = 0; i < count; i++)
        if (slurp(paths[i]))
            sum += numbers(paths[i]);
    return sum;
}

/* What else an answer needs: memory that it may use whatever happens, and whether a file of the configuration changed. */
static unsigned long beyond(char **paths, int count)
{
    void *reserve = mmap(NULL, RESERVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    struct stat file;

    for (int i = 0; i < count; i++)
        sum += lstat(paths[i], &file) == 0 ? (unsigned long) file.st_size : 0;
    munmap(reserve, RESERVE);
    return sum;
}

static unsigned long backends(char **pids, int count)
{
    unsigned long sum = 0;
    char path[64];

    snprintf(path, sizeof path, "/proc/%s/task/%s/children", pids[0], pids[0]);
    sum += slurp(path);
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
    int is_kept = argc > 3 && strcmp(argv[1], "kept") == 0, is_opened = argc > 3 && strcmp(argv[1], "opened") == 0;
    int is_backends = argc > 3 && strcmp(argv[1], "backends") == 0;
    long times = argc > 3 ? atol(argv[2]) : 0, *took = calloc(times > 0 ? times : 1, sizeof *took);
    int files[FILES], maps = must_open("/proc/self/maps"), read_count = 0;
    /* A mapping of its own, away from the others, as the main segment is. */
    void *segment = mmap(NULL, RESERVE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;

    if (times < 1 || !took || !(is_kept || is_opened || is_backends) || (!is_backends && argc - 3 > FILES))
    {
        fprintf(stderr, "usage: floor kept|opened TIMES FILE... [-- FILE...] | floor backends TIMES PID...\n");
        return 64;
    }
    while (read_count < argc - 3 && strcmp(argv[3 + read_count], "--") != 0)
        read_count++;
    for (int i = 0; is_kept && i < read_count; i++)
        files[i] = must_open(argv[3 + i]);
    for (long i = 0; i < times; i++)
    {
        long began = nanoseconds();

        if (is_backends)
            sum = backends(argv + 3, argc - 3);
        else
        {
            sum = is_kept ? kept(files, argv + 3, read_count, maps, segment) : opened(argv + 3, read_count, segment);
            if (read_count < argc - 3)
                sum += beyond(argv + 4 + read_count, argc - 4 - read_count);
        }
        took[i] = nanoseconds() - began;
    }
    qsort(took, times, sizeof *took, ascending);
    printf("%ld %lu\n", took[times / 2], sum);
    return 0;
}
