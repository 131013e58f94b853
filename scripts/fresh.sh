# shellcheck shell=bash
# ./dev fresh: the README's two commands, as a new user runs them, from several starting states.
#
# Each state is a pristine Debian tree (scripts/tree/state) below a layer of changes on disk, which is deleted afterwards.
# Of this machine it gets the Rust toolchain, the downloaded crates and Debian packages, and the way to the network.
# With --jobs 2, one state installs and compiles while the scenarios of another one run: of those, a lock lets one run at a
# time. The states user and container are tried alone.

FRESH=$TREES/fresh    # of each state the layer, the clone and Debian packages; crates and certificates
FRESH_LOGS=$CACHE/fresh
STARTING_STATES='bare no-rust server-only two-majors user root-home trixie ubuntu container'

AS_A_USER='- as a user'    # the pass of an ordinary user without sudo

# shellcheck source=scripts/fresh-checks.sh
. scripts/fresh-checks.sh
# shellcheck source=scripts/fresh-rust.sh
. scripts/fresh-rust.sh

run_fresh() {    # [STATE...] [--only demo|test] [--jobs N]
    local only='' jobs=1 state states=()
    while [ $# -gt 0 ]; do
        case $1 in
            --only=* | --jobs=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" && continue ;;
            --only) only=${2:-nothing} && shift $(($# > 1)) ;;
            --jobs) jobs=${2:-nothing} && shift $(($# > 1)) ;;
            *) [[ " $STARTING_STATES " == *" $1 "* ]] || fail "no starting state is called '$1'; there are: $STARTING_STATES"
                states+=("$1") ;;
        esac
        shift
    done
    [[ $only =~ ^(demo|test|)$ ]] || fail "--only takes demo or test, not '$only'"
    [[ $jobs =~ ^[1-9]$ ]] || fail "--jobs takes a number of states from 1 to 9, not '$jobs'"
    [ ${#states[@]} -gt 0 ] || read -ra states <<<"$STARTING_STATES"

    prepare_fresh
    for state in "${states[@]}"; do
        rm -f "$FRESH_LOGS/$state.result"
    done
    if [ "$jobs" -eq 1 ]; then
        for state in "${states[@]}"; do
            say "$state"
            try_state "$state" "$only"
        done
    else
        try_states "$jobs" "$only" "${states[@]}"
    fi
    summary "${states[@]}"
}

# Tries so many states at a time, each in a process of its own, whose lines begin with the state.
try_states() {    # JOBS ONLY STATE...
    local jobs=$1 only=$2 state at_once before=''
    shift 2
    # One after the other: two states may be copies of the same tree. What fails here is told when the state is tried.
    for state in "$@"; do
        state_facts "$state"
        ! is_available || (make_state_tree "$state") || true
    done
    LAYER=''
    trap 'end_states; stop_painter' EXIT
    for state in "$@"; do
        # A scenario lets the kernel refuse memory to whoever is not root, such as the compiler of an ordinary user, or lacks
        # its capabilities, as in a container.
        at_once=$jobs
        [[ " user container " != *" $state "* && " user container " != *" $before "* ]] || at_once=1
        before=$state
        while [ "$(jobs -pr | wc -l)" -ge "$at_once" ]; do wait -n || true; done
        try_apart "$state" "$only" 2>&1 | sed -u "s/^/$state: /" &
    done
    wait
}

# Each ends in order what runs in its tree.
end_states() {
    local running
    running=$(jobs -pr)
    # shellcheck disable=SC2086
    [ -z "$running" ] || kill -TERM $running 2>/dev/null || true
    wait
}

try_apart() {    # STATE ONLY
    local LOG=$FRESH_LOGS/$1.log
    : >"$LOG"
    trap end_state EXIT
    trap 'exit 143' TERM
    try_state "$1" "$2"
}

# Prints a row for each state, and how many passed. Fails unless all did that were run.
summary() {    # STATE...
    local state row outcome passed=0 failed=0 not_run=0
    printf '\n%-12s %-16s %s\n' state demo 'test (minutes:seconds)'
    for state in "$@"; do
        if [ -f "$FRESH_LOGS/$state.result" ]; then
            { read -r outcome && row=$(cat); } <"$FRESH_LOGS/$state.result"
        else
            outcome=failed row=$(printf '%-12s failed: ended before its result' "$state")
        fi
        case $outcome in
            passed) passed=$((passed + 1)) ;;
            failed) failed=$((failed + 1)) ;;
            *) not_run=$((not_run + 1)) ;;
        esac
        printf '%s\n' "$row"
    done
    printf '\n%d passed, %d failed%s\n' "$passed" "$failed" "$([ "$not_run" -eq 0 ] || echo ", $not_run not run")"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# What all states share. Sets README_COMMANDS, TOOLCHAIN_OF_HOST and NETWORK, the variables that lead to the network.
prepare_fresh() {
    local absent bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt} cargo_home name
    start_log
    find_rust trees
    take_trees
    trap 'end_state; stop_painter' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mapfile -t absent < <(missing debootstrap git python3)
    [ ${#absent[@]} -eq 0 ] || step "Installing ${absent[*]}" as_root scripts/apt-install "${absent[@]}"

    mapfile -t README_COMMANDS < <(git show HEAD:README.md | readme_commands)
    [[ ${#README_COMMANDS[@]} -eq 2 && ${README_COMMANDS[0]} == *demo && ${README_COMMANDS[1]} == *test ]] ||
        fail "README.md has to show two commands under 'Try it', the demo and the test; it shows: ${README_COMMANDS[*]}"
    [ -z "$(git status --porcelain)" ] || say "A new user clones what is committed; changes that are not are left out."

    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    mkdir -p "$FRESH" "$FRESH_LOGS"
    as_root mkdir -p "$FRESH/registry" "$FRESH/certificates"
    keep_crates "$cargo_home/registry"
    : >"$FRESH_LOGS/cargo-config.toml"
    for name in config config.toml; do
        [ ! -f "$cargo_home/$name" ] || network_settings <"$cargo_home/$name" >>"$FRESH_LOGS/cargo-config.toml"
    done
    as_root cp "$FRESH_LOGS/cargo-config.toml" "$FRESH/cargo-config.toml"
    TOOLCHAIN_OF_HOST=$(rustc --print sysroot)
    mapfile -t NETWORK < <(env | grep -iE '^(https?_proxy|no_proxy|all_proxy|CARGO_(HTTP|NET|SOURCE|REGISTR)[A-Z_]*|RUSTUP_(UPDATE_ROOT|DIST_SERVER)|PIP_INDEX_URL|NPM_CONFIG_REGISTRY)=')
    # Beside /etc/ssl/certs: the package ssl-cert writes there.
    if [ -f "$bundle" ]; then
        as_root cp -L "$bundle" "$FRESH/certificates/bundle.crt"
        for name in SSL_CERT_FILE CARGO_HTTP_CAINFO NODE_EXTRA_CA_CERTS; do
            NETWORK+=("$name=/etc/ssl/machine/bundle.crt")
        done
    fi
}

# state_facts STATE: sets LABEL, SUITE, STATE_TREE; LAYER, for its changes; NEWCOMER and NEWCOMER_HOME; CLONE, where the clone
# lies; CLONE_UMASK; LOGIN, the environment of the login shell; TOOLCHAIN_INSIDE, the option that shows Rust; ENTER, options of
# scripts/tree/enter; BECOME, how to become the newcomer; and PASSES, how often
# the commands are run: in each, free huge pages of the host (- as they are), and the row's name.
state_facts() {
    local path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    LABEL=Debian SUITE=$(suite_of 15) NEWCOMER=root NEWCOMER_HOME=/root CLONE=/usr/local/src/pg_hugepages CLONE_UMASK=022
    LOGIN=() LAYER=$FRESH/layers/$1 ENTER=() BECOME=() PASSES=("- $1")
    case $1 in
        two-majors | trixie) SUITE=$(suite_of 17) ;;
        ubuntu) LABEL=Ubuntu SUITE=$(apt_archive Ubuntu RELEASE) SUITE=${SUITE%%-*} ;;
        user)
            NEWCOMER=newcomer NEWCOMER_HOME=/home/newcomer CLONE=/home/newcomer/pg_hugepages
            path=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games
            ;;
        root-home)
            CLONE=/root/pg_hugepages CLONE_UMASK=077
            LOGIN=(LANG=de_DE.UTF-8 TZ=Asia/Kolkata COLUMNS=80)
            ;;
        container)
            # As process 1, which in a container is what was asked for.
            BECOME=(setpriv --reuid="$NEWCOMER" --regid="$NEWCOMER" --init-groups)
            ENTER=(--container) PASSES=('0 container' '300 - 300 pages' "300 $AS_A_USER")
            ;;
    esac
    [ ${#BECOME[@]} -gt 0 ] || BECOME=(runuser -u "$NEWCOMER" --)
    case $1 in
        bare | no-rust | trixie | ubuntu) STATE_TREE=$TREES/$SUITE ;;
        container) STATE_TREE=$TREES/fresh-server-only ;;
        *) STATE_TREE=$TREES/fresh-$1 ;;
    esac
    LOGIN+=(HOME="$NEWCOMER_HOME" USER="$NEWCOMER" LOGNAME="$NEWCOMER" SHELL=/bin/bash TERM=linux
        PATH="$NEWCOMER_HOME/.cargo/bin:$path" "${NETWORK[@]}")
    TOOLCHAIN_INSIDE=(--ro "$TOOLCHAIN_OF_HOST=$NEWCOMER_HOME/.rustup/toolchains/stable")
    [ "$1" != no-rust ] || TOOLCHAIN_INSIDE=()
}

# try_state STATE ONLY: leaves its result in a file: passed, failed or not run, and its rows of the summary.
try_state() {
    local state=$1 only=$2 outcome=passed rows='' pass
    state_facts "$state"
    [ "$state" != no-rust ] || offer_rust
    if ! is_available; then
        outcome='not run' rows=$(row "$state" "not run: apt here knows no archive of $LABEL")
    elif ! (make_state_tree "$state") || ! (begin_state "$state"); then
        outcome=failed rows=$(row "$state" 'failed: no tree')
    else
        for pass in "${PASSES[@]}"; do
            [ "$outcome" = passed ] || break
            try_pass "${pass%% *}" "${pass#* }"
        done
        alone keep_crates "$LAYER/changes$NEWCOMER_HOME/.cargo/registry"
        end_state
    fi
    printf '%s\n%s\n' "$outcome" "$rows" >"$FRESH_LOGS/$state.result"
}

row() { printf '%-12s %-16s %s\n' "$1" "$2" "${3:-}" | sed 's/ *$//'; }

# try_pass PAGES NAME: the commands once. Of try_state it knows state and only, and it sets outcome and adds a row.
try_pass() {
    local demo=- test=- command name
    if [ "$1" != - ] && ! set_pool "$1"; then
        outcome=failed demo="failed: the host did not give $1 free huge pages"
    fi
    [ "$2" != "$AS_A_USER" ] || leave_to_user
    for command in "${README_COMMANDS[@]}"; do
        name=${command##* }
        [[ ${only:-$name} == "$name" && $outcome == passed ]] || continue
        try_command "$state" "$name" "$command"
        if [ "$name" = demo ]; then demo=$RESULT; else test=$RESULT; fi
        [[ $RESULT == passed* ]] || outcome=failed
    done
    rows+=${rows:+$'\n'}$(row "$2" "$demo" "$test")
}

is_available() { [ -n "$(apt_archive "$LABEL" SITE)" ]; }

make_state_tree() {    # STATE
    [ ! -d "$STATE_TREE" ] || return 0
    bare_tree "$SUITE" "$LABEL"
    [ "$STATE_TREE" != "$TREES/$SUITE" ] || return 0
    step "A copy of it for the state $1" as_root copy_tree "$TREES/$SUITE" "$STATE_TREE.unfinished"
    step "Preparing the state $1 there" in_tree --keep "$STATE_TREE.unfinished" scripts/tree/state "${STATE_TREE#"$TREES/fresh-"}"
    as_root mv "$STATE_TREE.unfinished" "$STATE_TREE"
}

# A new layer, with a new clone, Rust and the downloaded crates in it.
begin_state() {    # STATE
    end_state
    mkdir -p "$FRESH/clones"
    as_root mkdir -p "$FRESH/debs/$1"
    step "Cloning for the state $1" clone_sources "$FRESH/clones/$1"
    step "Moving in" alone in_state "$1" --ro "$TREES/source=/source" --ro "$FRESH=/given" "$STATE_TREE" \
        scripts/tree/settle "$NEWCOMER" "$NEWCOMER_HOME" "/given/clones/$1" "$CLONE"
    as_root scripts/tree/leave "$LAYER" >>"$LOG"
}

clone_sources() {    # DIRECTORY
    rm -rf "$1"
    (umask "$CLONE_UMASK" && git clone --quiet --no-hardlinks "$PWD" "$1")
}

# Sets the free huge pages of the host, until end_state.
set_pool() {    # PAGES
    # A signal is handled after the assignment.
    if [ -z "${POOL_BEFORE:-}" ]; then
        POOL_BEFORE=$(as_root "$PYTHON" scripts/host-pool "$1")
    else
        as_root "$PYTHON" scripts/host-pool "$1" >>"$LOG"
    fi
}

# Makes an ordinary user without sudo the newcomer, and leaves them what root has cloned and compiled.
leave_to_user() {
    local give="useradd --create-home newcomer && mv /root/.cache /root/.cargo /home/newcomer/ && chown -R newcomer: /home/newcomer '$CLONE'"
    in_state "$state" "$STATE_TREE" /bin/sh -c "$give" >>"$LOG" 2>&1
    NEWCOMER=newcomer NEWCOMER_HOME=/home/newcomer
    TOOLCHAIN_INSIDE=(--ro "$TOOLCHAIN_OF_HOST=$NEWCOMER_HOME/.rustup/toolchains/stable")
    LOGIN+=(HOME="$NEWCOMER_HOME" USER="$NEWCOMER" LOGNAME="$NEWCOMER" PATH="$NEWCOMER_HOME/.cargo/bin:/usr/local/bin:/usr/bin:/bin")
    BECOME=(setpriv --reuid="$NEWCOMER" --regid="$NEWCOMER" --init-groups)
}

# Kills what still runs in the tree, puts the host's pool back, and deletes the layer. Nothing is mounted once no process is
# in there.
end_state() {
    [ -n "${LAYER:-}" ] || return 0
    trap '' INT TERM HUP
    as_root scripts/tree/leave "$LAYER" >>"$LOG"
    [ -z "${POOL_BEFORE:-}" ] || as_root "$PYTHON" scripts/host-pool --total "$POOL_BEFORE" >>"$LOG"
    POOL_BEFORE=''
    as_root rm -rf --one-file-system "$LAYER"
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# in_state STATE [OPTION..] TREE COMMAND...: as scripts/tree/enter, with the layer. No terminal reaches it, and the signals
# that a shell blocks for its background processes have their usual meaning.
in_state() {
    as_root env --default-signal=INT --default-signal=QUIT setsid --wait scripts/tree/enter "${ENTER[@]}" --changes "$LAYER" \
        "${TOOLCHAIN_INSIDE[@]}" --ro "$FRESH/certificates=/etc/ssl/machine" \
        --rw "$FRESH/debs/$1=/var/cache/apt/archives" "${@:2}"
}

# try_command STATE NAME COMMAND: runs it as the newcomer's login shell does. Sets RESULT.
try_command() {
    local state=$1 name=$2 command=$3 began=$SECONDS status=0 why='' left time
    local LOG=$FRESH_LOGS/$state-$name.log
    : >"$LOG"
    if [ -t 1 ]; then
        paint "$command" 1 &
        # shellcheck disable=SC2034
        PAINTER=$!
    else
        printf '.. %s\n' "$command"
    fi
    # In the background: wait ends at a signal, and what runs there is ended in order, before the layer is deleted.
    # It does not hold the lock of the trees: if we are killed, the next ./dev fresh ends it.
    {
        exec {TREES_LOCK}>&-
        in_state "$state" "$STATE_TREE" "${BECOME[@]}" env -i "${LOGIN[@]}" \
            /bin/bash -c "umask $CLONE_UMASK && cd '$CLONE' && $command"
    } >"$LOG" 2>&1 </dev/null &
    wait $! || status=$?
    time=$(((SECONDS - began) / 60)):$(printf '%02d' $(((SECONDS - began) % 60)))
    stop_painter
    left=$(as_root scripts/tree/leave "$LAYER")

    if [ "$status" -ne 0 ]; then
        why="exit status $status"
    elif [[ $left == *postgres* ]]; then
        why="it left a server running"
    elif [ "$name" = demo ]; then
        why=$(demo_misses "$state" <"$LOG")
    else
        # What ./dev does not print is in its logs.
        why=$({
            cat "$LOG"
            as_root find "$LAYER/changes$NEWCOMER_HOME/.cache/pg_hugepages" -maxdepth 1 -name '*.log' -exec cat {} + || true
        } 2>/dev/null | test_misses "$state")
    fi
    [[ -n $why || $state != no-rust ]] || why=$(rust_misses "$LAYER/changes$NEWCOMER_HOME")
    if [ -z "$why" ]; then
        RESULT="passed $time"
        [ "$name" != test ] || RESULT="passed $time, $(test_numbers <"$LOG")"
        printf '%sok%s %s %s(%s)%s\n' "$GREEN" "$PLAIN" "$command" "$DIM" "$time" "$PLAIN"
    else
        RESULT="failed $time"
        printf '%s!! %s: %s%s failed after %s: %s\nIts last lines:\n\n' "$RED" "$state" "$command" "$PLAIN" "$time" "$why"
        tail -n 25 "$LOG" | sed 's/^/   /'
        printf '\nAll of it is in %s\n' "$LOG"
    fi
}

# Runs a command while no other state copies crates.
alone() { (flock 9 && "$@") 9<"$FRESH_LOGS"; }

# keep_crates REGISTRY: adds what cargo has downloaded there to what every state is given.
keep_crates() {
    local part
    for part in cache index; do
        ! as_root test -d "$1/$part" || as_root cp -R -u --preserve=timestamps "$1/$part" "$FRESH/registry/"
    done
}
