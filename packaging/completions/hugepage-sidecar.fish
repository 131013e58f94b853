# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hugepage_sidecar_global_optspecs
    string join \n root= timeout= h/help V/version
end

function __fish_hugepage_sidecar_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hugepage_sidecar_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hugepage_sidecar_using_subcommand
    set -l cmd (__fish_hugepage_sidecar_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -s V -l version -d 'Print version'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "status" -d 'Show every instance, the pools, and one verdict'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "size" -d 'Show the recommended size of every pool, for running and for stopped servers'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "check" -d 'Print one line and set the exit status, for monitoring systems'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "watch" -d 'Monitor continuously: log losses and risks, keep the history, write files'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "metrics" -d 'Print metrics as OpenMetrics text, for node_exporter\'s textfile collector'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "report" -d 'Write an HTML report with page tables and the history'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "apply" -d 'Set the size of a pool; restore it if the kernel does not provide all pages'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "collapse" -d 'Give a running PostgreSQL server transparent huge pages, without a restart'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "reserve" -d 'Reserve the pages of the servers that a boot will start, early at that boot, see hugepage-reserve.service'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "capture" -d 'Print the facts read from this host as JSON, for --snapshot of other commands'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "explain" -d 'Explain a cause, a finding or a kernel advisory: what it means, how to see it, what to do'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "completions" -d 'Print what completes commands in a shell'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "oracle" -d 'Write files for Oracle Database, and print the SQL that reads them'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l snapshot -d 'Show the host of FILE, which `capture` wrote, as it was then' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l format -d 'Output format' -r -f -a "table\t'A table for people, 80 columns wide; colour on a terminal only'
json\t'One JSON document'
csv\t'Comma-separated values with a header line (RFC 4180), one line per instance'"
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l snapshot -d 'Show the host of FILE, which `capture` wrote, as it was then' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l postgresql-data -d 'Data directory of a stopped PostgreSQL server; see also /etc/hugepage-sidecar/postgresql-data' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l forget -d 'Count the server in DIR, or of this SID, no more, which was seen here and is gone' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l sessions -d 'Predict the page tables of N sessions of each server, in 4 kB pages and in huge pages' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l shared-buffers -d 'Show the pages of a PostgreSQL server that is only planned, with this shared_buffers, such as 8GB' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l max-connections -d 'Number of its max_connections' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l major -d 'Its major version, 15 or later, whose program is installed here' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l format -d 'Output format' -r -f -a "table\t'A table for people, 80 columns wide; colour on a terminal only'
json\t'One JSON document'
kubernetes\t'The limits of a pod, for a manifest, of a server that is only planned'"
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -l running-only -d 'Count running servers only'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand size" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l snapshot -d 'Show the host of FILE, which `capture` wrote, as it was then' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l instance -d 'Check only this instance: a SID, or a data directory' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand check" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l interval -d 'Time between two surveys' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l state-dir -d 'Directory for the history of each instance; with --root below that directory, and nothing is kept without this option [default: /var/lib/hugepage-sidecar]' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l history-size -d 'Records to keep per instance; 0 keeps none' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l json -d 'Write the output of `status --format json` to FILE after each survey' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l textfile -d 'Write the output of `metrics` to FILE after each survey, for node_exporter\'s textfile collector' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l oracle-dir -d 'Write the files for Oracle Database to DIR after each survey, see docs/oracle.md; may be repeated' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l mode -d 'Permissions of the files, octal [default: 640]' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -l once -d 'Survey once and exit with the status of `status`'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand watch" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l snapshot -d 'Show the host of FILE, which `capture` wrote, as it was then' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l textfile -d 'Write to FILE instead of standard output; the file is replaced atomically' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -l quiet -d 'Do not write notes to standard error, which cron would mail'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand metrics" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l snapshot -d 'Show the host of FILE, which `capture` wrote, as it was then' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l html -d 'Write the report to FILE, or to standard output if FILE is "-"' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l connections -d 'Show the page tables of N connections' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand report" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l pages -d 'Set the pool to N pages' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l page-size -d 'Page size of the pool, such as 2MB or 1GB [default: the kernel\'s default size]' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l reserve-percent -d 'Keep this share of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l postgresql-data -d 'Data directory of a stopped PostgreSQL server; see also /etc/hugepage-sidecar/postgresql-data' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l recommended -d 'Set the pool to what the servers of this host need, and never reduce it'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l persist -d 'Also set it for the next boot: in sysctl.d, or in tmpfiles.d for sizes other than the default'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l yes -d 'Change the pool without a question; required where there is no terminal to ask on'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -l dry-run -d 'Print what would be done, and change nothing'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand apply" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l instance -d 'The instance: its data directory, as `status` shows it' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l reserve-percent -d 'Stop before less than this share of the host, of a NUMA node or of a memory limit is available, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l max-rate -d 'Collapse at most so many MB in a second' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l numa-any -d 'Let ranges go to other NUMA nodes than their pages are on'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l yes -d 'Begin without a question; required where there is no terminal to ask on'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -l dry-run -d 'Print the plan, and change nothing'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand collapse" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand reserve" -l reserve-percent -d 'Keep this share of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand reserve" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand reserve" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand reserve" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -l anonymous -d 'Give hosts, users, directories and SIDs other names, the same wherever they are the same'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand capture" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand explain" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand explain" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand explain" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand completions" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand completions" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand completions" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -f -a "write" -d 'Write the files once; `watch --oracle-dir DIR` updates them continuously'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -f -a "print" -d 'Print one of the files, such as hp_pool.dat'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -f -a "install-sql" -d 'Print the SQL*Plus script that creates all objects, or upgrades an older installation'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -f -a "uninstall-sql" -d 'Print the SQL*Plus script that removes all objects'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -f -a "columns" -d 'Print the columns of all views as Markdown'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and not __fish_seen_subcommand_from write print install-sql uninstall-sql columns help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l mode -d 'Permissions of the files, octal [default: 640]' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -l records -d 'Write snapshots from standard input instead: one JSON object per line'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from write" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from print" -l reserve-percent -d 'Keep this much of the host\'s memory for 4 kB pages, in percent' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from print" -l state-dir -d 'Directory where `watch` keeps the history of each instance' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from print" -l service-account -d 'Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from print" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from print" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from print" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l schema -d 'Schema to create' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l role -d 'Role that may read the views' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l directory -d 'Directory object' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l dir -d 'Directory that the sidecar writes to' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l synonyms -d 'Create public synonyms for the views'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -l external-tables -d 'Read the files by external tables alone, so that neither UTL_FILE nor SYS is needed'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from install-sql" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l schema -d 'Schema to create' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l role -d 'Role that may read the views' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l directory -d 'Directory object' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l dir -d 'Directory that the sidecar writes to' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l synonyms -d 'Create public synonyms for the views'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -l external-tables -d 'Read the files by external tables alone, so that neither UTL_FILE nor SYS is needed'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from uninstall-sql" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l schema -d 'Schema to create' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l role -d 'Role that may read the views' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l directory -d 'Directory object' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l dir -d 'Directory that the sidecar writes to' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l root -d 'Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc' -r -F
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l timeout -d 'Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond' -r
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l synonyms -d 'Create public synonyms for the views'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -l external-tables -d 'Read the files by external tables alone, so that neither UTL_FILE nor SYS is needed'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from columns" -s h -l help -d 'Print help'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from help" -f -a "write" -d 'Write the files once; `watch --oracle-dir DIR` updates them continuously'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from help" -f -a "print" -d 'Print one of the files, such as hp_pool.dat'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from help" -f -a "install-sql" -d 'Print the SQL*Plus script that creates all objects, or upgrades an older installation'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from help" -f -a "uninstall-sql" -d 'Print the SQL*Plus script that removes all objects'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from help" -f -a "columns" -d 'Print the columns of all views as Markdown'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand oracle; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "status" -d 'Show every instance, the pools, and one verdict'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "size" -d 'Show the recommended size of every pool, for running and for stopped servers'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "check" -d 'Print one line and set the exit status, for monitoring systems'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "watch" -d 'Monitor continuously: log losses and risks, keep the history, write files'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "metrics" -d 'Print metrics as OpenMetrics text, for node_exporter\'s textfile collector'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "report" -d 'Write an HTML report with page tables and the history'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "apply" -d 'Set the size of a pool; restore it if the kernel does not provide all pages'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "collapse" -d 'Give a running PostgreSQL server transparent huge pages, without a restart'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "reserve" -d 'Reserve the pages of the servers that a boot will start, early at that boot, see hugepage-reserve.service'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "capture" -d 'Print the facts read from this host as JSON, for --snapshot of other commands'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "explain" -d 'Explain a cause, a finding or a kernel advisory: what it means, how to see it, what to do'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "completions" -d 'Print what completes commands in a shell'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "oracle" -d 'Write files for Oracle Database, and print the SQL that reads them'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and not __fish_seen_subcommand_from status size check watch metrics report apply collapse reserve capture explain completions oracle help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and __fish_seen_subcommand_from oracle" -f -a "write" -d 'Write the files once; `watch --oracle-dir DIR` updates them continuously'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and __fish_seen_subcommand_from oracle" -f -a "print" -d 'Print one of the files, such as hp_pool.dat'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and __fish_seen_subcommand_from oracle" -f -a "install-sql" -d 'Print the SQL*Plus script that creates all objects, or upgrades an older installation'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and __fish_seen_subcommand_from oracle" -f -a "uninstall-sql" -d 'Print the SQL*Plus script that removes all objects'
complete -c hugepage-sidecar -n "__fish_hugepage_sidecar_using_subcommand help; and __fish_seen_subcommand_from oracle" -f -a "columns" -d 'Print the columns of all views as Markdown'
