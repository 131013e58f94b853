/*
 * A process that stands for one of Oracle's: named by its arguments as those are, with the shared memory that it is
 * told to have. Standard input tells, a line each:
 *
 *   sysv SIZE PAGE_SIZE TOUCH KEY   make a System V segment, in huge pages of that size unless it is 0, and attach it
 *   attach SHMID TOUCH              attach one that another process made
 *   file SIZE TOUCH PATH            make a file and map it: AMM's in /dev/shm, or one on hugetlbfs
 *   map SIZE TOUCH PATH             map one that another process made
 *
 * TOUCH is 1 to write into every page. Standard output has `sysv SHMID` for each segment, then `ready`; or one line
 * that begins with `error`. What a process made it takes away again when it is told to end, or when its parent does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

#ifndef SHM_HUGE_SHIFT
#define SHM_HUGE_SHIFT 26
#endif

enum { MOST = 4096, LONGEST = 4096 };

static int	segments[MOST];
static char *files[MOST];
static int	segment_count, file_count;

static void
take_away(void)
{
	while (segment_count > 0)
		shmctl(segments[--segment_count], IPC_RMID, NULL);
	while (file_count > 0)
		unlink(files[--file_count]);
}

static void
fail(const char *what)
{
	printf("error: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	take_away();
	exit(1);
}

static void
touch(volatile char *memory, size_t size, int wanted)
{
	size_t		page = (size_t) sysconf(_SC_PAGESIZE);

	for (size_t at = 0; wanted && at < size; at += page)
		memory[at] = 1;
}

static void
attach(int shmid, int wanted)
{
	struct shmid_ds segment;
	char	   *memory = shmat(shmid, NULL, 0);

	if (memory == (void *) -1)
		fail("shmat");
	if (shmctl(shmid, IPC_STAT, &segment) != 0)
		fail("shmctl");
	touch(memory, segment.shm_segsz, wanted);
}

static void
make_segment(size_t size, size_t page_size, int wanted, unsigned key)
{
	int			flags = IPC_CREAT | IPC_EXCL | 0660;
	int			shmid;

	if (page_size > 0)
		flags |= SHM_HUGETLB | __builtin_ctzl(page_size) << SHM_HUGE_SHIFT;
	shmid = shmget((key_t) key, size, flags);
	if (shmid < 0)
		fail("shmget");
	segments[segment_count++] = shmid;
	printf("sysv %d\n", shmid);
	attach(shmid, wanted);
}

static void
map(const char *path, size_t size, int wanted, int flags)
{
	int			fd = open(path, O_RDWR | O_CLOEXEC | flags, 0660);
	char	   *memory;

	if (fd < 0)
		fail(path);
	if (flags & O_CREAT)
	{
		files[file_count++] = strdup(path);
		if (ftruncate(fd, (off_t) size) != 0)
			fail("ftruncate");
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	close(fd);
	touch(memory, size, wanted);
}

static void
obey(char *line)
{
	size_t		size, page_size;
	int			shmid, wanted, path = 0;
	unsigned	key;

	line[strcspn(line, "\n")] = '\0';
	if (segment_count == MOST || file_count == MOST)
		errno = E2BIG, fail("too much");
	else if (sscanf(line, "sysv %zu %zu %d %u", &size, &page_size, &wanted, &key) == 4)
		make_segment(size, page_size, wanted, key);
	else if (sscanf(line, "attach %d %d", &shmid, &wanted) == 2)
		attach(shmid, wanted);
	else if (sscanf(line, "file %zu %d %n", &size, &wanted, &path) == 2 && path > 0)
		map(line + path, size, wanted, O_CREAT | O_EXCL);
	else if (sscanf(line, "map %zu %d %n", &size, &wanted, &path) == 2 && path > 0)
		map(line + path, size, wanted, 0);
	else
		errno = EINVAL, fail(line);
}

int
main(int argc, char **argv)
{
	char		line[LONGEST];
	sigset_t	ends;
	int			caught;

	/* Held back until all is made, so that nothing is made that is not known. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (argc > 0)
		prctl(PR_SET_NAME, argv[0]);

	while (fgets(line, sizeof line, stdin))
		obey(line);
	puts("ready");
	fflush(stdout);
	sigwait(&ends, &caught);
	take_away();
	return 0;
}
