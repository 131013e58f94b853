# shellcheck shell=bash
# ./dev fresh: the README's two commands, as a new user runs them, from several starting states.
#
# Each state is a pristine Debian tree (scripts/tree/state) below a layer of changes on disk, which is deleted afterwards.
# Of this machine it gets the Rust toolchain, the downloaded crates and Debian packages, and the way to the network.

FRESH=$TREES/fresh    # the layer, the clone, crates, Debian packages, and certificates
FRESH_LOGS=$CACHE/fresh
STARTING_STATES='bare server-only two-majors user root-home trixie ubuntu'

# shellcheck source=scripts/fresh-checks.sh
. scripts/fresh-checks.sh

run_fresh() {    # [STATE...] [--only demo|test]
    local only='' state states=() rows='' failed=0 passed=0 not_run=0
    while [ $# -gt 0 ]; do
        case $1 in
            --only=*) only=${1#*=} ;;
            --only) only=${2:-nothing} && shift $(($# > 1)) ;;
            *) [[ " $STARTING_STATES " == *" $1 "* ]] || fail "no starting state is called '$1'; there are: $STARTING_STATES"
                states+=("$1") ;;
        esac
        shift
    done
    [[ $only =~ ^(demo|test|)$ ]] || fail "--only takes demo or test, not '$only'"
    [ ${#states[@]} -gt 0 ] || read -ra states <<<"$STARTING_STATES"

    prepare_fresh
    for state in "${states[@]}"; do
        say "$state"
        try_state "$state" "$only"
        case $OUTCOME in
            passed) passed=$((passed + 1)) ;;
            failed) failed=$((failed + 1)) ;;
            *) not_run=$((not_run + 1)) ;;
        esac
        rows+=$(printf '%-12s %-16s %s' "$state" "$DEMO" "$TEST" | sed 's/ *$//')$'\n'
    done
    printf '\n%-12s %-16s %s\n%s' state demo 'test (minutes:seconds)' "$rows"
    printf '\n%d passed, %d failed%s\n' "$passed" "$failed" "$([ "$not_run" -eq 0 ] || echo ", $not_run not run")"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# What all states share. Sets README_COMMANDS, TOOLCHAIN_OF_HOST and NETWORK, the variables that lead to the network.
prepare_fresh() {
    local absent bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt} cargo_home name
    start_log
    find_rust
    take_trees
    trap 'end_state; stop_painter' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mapfile -t absent < <(missing debootstrap git)
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
    mapfile -t NETWORK < <(env | grep -iE '^(https?_proxy|no_proxy|all_proxy|CARGO_(HTTP|NET|SOURCE|REGISTR)[A-Z_]*|PIP_INDEX_URL|NPM_CONFIG_REGISTRY)=')
    # Beside /etc/ssl/certs: the package ssl-cert writes there.
    if [ -f "$bundle" ]; then
        as_root cp -L "$bundle" "$FRESH/certificates/bundle.crt"
        for name in SSL_CERT_FILE CARGO_HTTP_CAINFO NODE_EXTRA_CA_CERTS; do
            NETWORK+=("$name=/etc/ssl/machine/bundle.crt")
        done
    fi
}

# state_facts STATE: sets LABEL, SUITE, STATE_TREE; NEWCOMER and NEWCOMER_HOME; CLONE, where the clone lies; CLONE_UMASK;
# and LOGIN, the environment of the login shell.
state_facts() {
    local path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    LABEL=Debian SUITE=$(suite_of 15) NEWCOMER=root NEWCOMER_HOME=/root CLONE=/usr/local/src/pg_hugepages CLONE_UMASK=022
    LOGIN=()
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
    esac
    case $1 in
        bare | trixie | ubuntu) STATE_TREE=$TREES/$SUITE ;;
        *) STATE_TREE=$TREES/fresh-$1 ;;
    esac
    LOGIN+=(HOME="$NEWCOMER_HOME" USER="$NEWCOMER" LOGNAME="$NEWCOMER" SHELL=/bin/bash TERM=linux
        PATH="$NEWCOMER_HOME/.cargo/bin:$path" "${NETWORK[@]}")
}

# try_state STATE ONLY: sets OUTCOME, DEMO and TEST.
try_state() {
    local state=$1 only=$2 command name
    OUTCOME=passed DEMO=- TEST=-
    state_facts "$state"
    if [ -z "$(apt_archive "$LABEL" SITE)" ]; then
        OUTCOME='not run' DEMO="not run: apt here knows no archive of $LABEL" TEST=''
        return 0
    fi
    if ! (make_state_tree "$state") || ! (begin_state "$state"); then
        OUTCOME=failed DEMO='failed: no tree' TEST=''
        return 0
    fi
    for command in "${README_COMMANDS[@]}"; do
        name=${command##* }
        [[ ${only:-$name} == "$name" && $OUTCOME == passed ]] || continue
        try_command "$state" "$name" "$command"
        if [ "$name" = demo ]; then DEMO=$RESULT; else TEST=$RESULT; fi
        [[ $RESULT == passed* ]] || OUTCOME=failed
    done
    keep_crates "$FRESH/layer/changes$NEWCOMER_HOME/.cargo/registry"
    end_state
}

make_state_tree() {    # STATE
    [ ! -d "$STATE_TREE" ] || return 0
    bare_tree "$SUITE" "$LABEL"
    [ "$STATE_TREE" != "$TREES/$SUITE" ] || return 0
    step "A copy of it for the state $1" as_root copy_tree "$TREES/$SUITE" "$STATE_TREE.unfinished"
    step "Preparing the state $1 there" in_tree --keep "$STATE_TREE.unfinished" scripts/tree/state "$1"
    as_root mv "$STATE_TREE.unfinished" "$STATE_TREE"
}

# A new layer, with a new clone, Rust and the downloaded crates in it.
begin_state() {    # STATE
    end_state
    as_root mkdir -p "$FRESH/debs/$SUITE"
    step "Cloning for the state $1" clone_sources
    step "Moving in" in_state --ro "$TREES/source=/source" --ro "$FRESH=/given" "$STATE_TREE" \
        scripts/tree/settle "$NEWCOMER" "$NEWCOMER_HOME" "$CLONE"
    as_root scripts/tree/leave "$FRESH/layer" >>"$LOG"
}

clone_sources() {
    rm -rf "$FRESH/clone"
    (umask "$CLONE_UMASK" && git clone --quiet --no-hardlinks "$PWD" "$FRESH/clone")
}

# Kills what still runs in the tree, and deletes the layer. Nothing is mounted once no process is in there.
end_state() {
    trap '' INT TERM HUP
    as_root scripts/tree/leave "$FRESH/layer" >>"$LOG"
    as_root rm -rf --one-file-system "$FRESH/layer"
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# in_state [OPTION..] TREE COMMAND...: as scripts/tree/enter, with the layer. No terminal reaches it, and the signals that
# a shell blocks for its background processes have their usual meaning.
in_state() {
    as_root env --default-signal=INT --default-signal=QUIT setsid --wait scripts/tree/enter --changes "$FRESH/layer" \
        --ro "$TOOLCHAIN_OF_HOST=$NEWCOMER_HOME/.rustup/toolchains/stable" --ro "$FRESH/certificates=/etc/ssl/machine" \
        --rw "$FRESH/debs/$SUITE=/var/cache/apt/archives" "$@"
}

# try_command STATE NAME COMMAND: runs it as the newcomer's login shell does. Sets RESULT.
try_command() {
    local state=$1 name=$2 command=$3 began=$SECONDS status=0 why='' left time
    local LOG=$FRESH_LOGS/$state-$name.log
    : >"$LOG"
    if [ -t 1 ]; then
        paint "$state: $command" 1 &
        # shellcheck disable=SC2034
        PAINTER=$!
    else
        printf '.. %s: %s\n' "$state" "$command"
    fi
    # In the background: wait ends at a signal, and what runs there is ended in order, before the layer is deleted.
    # It does not hold the lock of the trees: if we are killed, the next ./dev fresh ends it.
    {
        exec {TREES_LOCK}>&-
        in_state "$STATE_TREE" runuser -u "$NEWCOMER" -- env -i "${LOGIN[@]}" \
            /bin/bash -c "umask $CLONE_UMASK && cd '$CLONE' && $command"
    } >"$LOG" 2>&1 </dev/null &
    wait $! || status=$?
    time=$(((SECONDS - began) / 60)):$(printf '%02d' $(((SECONDS - began) % 60)))
    stop_painter
    left=$(as_root scripts/tree/leave "$FRESH/layer")

    if [ "$status" -ne 0 ]; then
        why="exit status $status"
    elif [[ $left == *postgres* ]]; then
        why="it left a server running"
    elif [ "$name" = demo ]; then
        why=$(demo_misses <"$LOG")
    else
        # What ./dev does not print is in its logs.
        why=$({
            cat "$LOG"
            as_root find "$FRESH/layer/changes$NEWCOMER_HOME/.cache/pg_hugepages" -maxdepth 1 -name '*.log' -exec cat {} + || true
        } 2>/dev/null | test_misses "$state")
    fi
    if [ -z "$why" ]; then
        RESULT="passed $time"
        [ "$name" != test ] || RESULT="passed $time, $(test_numbers <"$LOG")"
        printf '%sok%s %s: %s %s(%s)%s\n' "$GREEN" "$PLAIN" "$state" "$command" "$DIM" "$time" "$PLAIN"
    else
        RESULT="failed $time"
        printf '%s!! %s: %s%s failed after %s: %s\nIts last lines:\n\n' "$RED" "$state" "$command" "$PLAIN" "$time" "$why"
        tail -n 25 "$LOG" | sed 's/^/   /'
        printf '\nAll of it is in %s\n' "$LOG"
    fi
}

# keep_crates REGISTRY: adds what cargo has downloaded there to what every state is given.
keep_crates() {
    local part
    for part in cache index; do
        ! as_root test -d "$1/$part" || as_root cp -R -u --preserve=timestamps "$1/$part" "$FRESH/registry/"
    done
}

# apt_archive LABEL FIELD: of the archive with that label that apt here reads; nothing if it reads none.
apt_archive() {
    apt-get indextargets --format "\$($2)" 'Created-By: Packages' "Label: $1" 'Component: main' | sort | sed -n 1p
}
