/*
 * The bare floor below the sidecar's look at a host, and what measures both alike.
 *
 *   host reads TIMES             for each path of standard input: open, read to its end, close; /proc is listed once
 *   host run TIMES COMMAND...    a program from its start to its end
 *
 * Prints, for one round, the median of TIMES rounds in nanoseconds, and a proof: of reads the bytes that were read last,
 * of a program the most memory that it had (kilobytes). This process is small, because a program's peak counts from the
 * moment before its start.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 100000, LONGEST = 512 };

static char *paths[MOST];
static int	count;

static long
nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int
ascending(const void *a, const void *b)
{
	long		left = *(const long *) a,
				right = *(const long *) b;

	return (left > right) - (left < right);
}

/* A process may have ended since the list was made. */
static long
reads(void)
{
	static char text[65536];
	long		sum = 0;
	DIR		   *processes = opendir("/proc");

	while (processes && readdir(processes))
		sum++;
	if (processes)
		closedir(processes);
	for (int i = 0; i < count; i++)
	{
		int			file = open(paths[i], O_RDONLY | O_CLOEXEC);
		ssize_t		length = file < 0 ? 0 : read(file, text, sizeof text);

		sum += length > 0 ? length : 0;
		if (file >= 0)
			close(file);
	}
	return sum;
}

static long
program(char **arguments)
{
	struct rusage used;
	int			status;
	pid_t		child = fork();

	if (child == 0)
	{
		int			nowhere = open("/dev/null", O_WRONLY);

		dup2(nowhere, 1);
		dup2(nowhere, 2);
		execv(arguments[0], arguments);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &used) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
	{
		fprintf(stderr, "host: %s could not be run\n", arguments[0]);
		exit(1);
	}
	return used.ru_maxrss;
}

int
main(int argc, char **argv)
{
	int			is_program = argc > 3 && strcmp(argv[1], "run") == 0;
	long		times = argc > 2 ? atol(argv[2]) : 0,
			   *took = calloc(times > 0 ? times : 1, sizeof *took),
				proof = 0;
	char		line[LONGEST];

	if (times < 1 || !took || (!is_program && strcmp(argv[1], "reads") != 0))
	{
		fprintf(stderr, "usage: host reads TIMES < PATHS | host run TIMES COMMAND...\n");
		return 64;
	}
	while (!is_program && count < MOST && fgets(line, sizeof line, stdin))
	{
		line[strcspn(line, "\n")] = '\0';
		paths[count++] = strdup(line);
	}
	for (long i = 0; i < times; i++)
	{
		long		began = nanoseconds(),
					found = is_program ? program(argv + 3) : reads();

		took[i] = nanoseconds() - began;
		proof = is_program && proof > found ? proof : found;
	}
	qsort(took, times, sizeof *took, ascending);
	printf("%ld %ld\n", took[times / 2], proof);
	return 0;
}
