# shellcheck shell=bash
# What ./dev says while it works: a line per step. The full output of every step goes to $LOG; on
# a terminal the step's line shows the seconds and the latest line of that output.

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    GREEN=$'\e[32m' RED=$'\e[31m' DIM=$'\e[2m' PLAIN=$'\e[0m'
else
    GREEN='' RED='' DIM='' PLAIN=''
fi
PAINTER=''

say() { printf '%s\n' "$*"; }
fail() { printf '%sdev:%s %s\n' "$RED" "$PLAIN" "$*" >&2 && exit 1; }

start_log() { mkdir -p "$CACHE" && : >"$LOG"; }

# step TITLE COMMAND...: runs the command with its output in the log; a failure ends ./dev with the
# end of that output. The command stays in the foreground, so that Ctrl-C reaches it.
step() {
    local title=$1 began=$SECONDS from status
    shift
    printf '\n== %s: %s\n' "$title" "$*" >>"$LOG"
    from=$(($(wc -l <"$LOG") + 1))
    if [ -t 1 ]; then
        paint "$title" "$from" &
        PAINTER=$!
    else
        printf '.. %s\n' "$title"
    fi
    set +e
    (set -e && "$@") >>"$LOG" 2>&1 </dev/null
    status=$?
    set -e
    stop_painter
    if [ "$status" -ne 0 ]; then
        printf '%s!! %s%s failed after %d s; its last lines:\n\n' \
            "$RED" "$title" "$PLAIN" $((SECONDS - began))
        tail -n "+$from" "$LOG" | tail -n 25 | sed 's/^/   /'
        printf '\nAll of it is in %s\n' "$LOG"
        exit "$status"
    fi
    printf '%sok%s %s %s(%d s)%s\n' "$GREEN" "$PLAIN" "$title" "$DIM" $((SECONDS - began)) "$PLAIN"
}

# Redraws the line of the running step until it is stopped.
paint() {
    local title=$1 from=$2 began=$SECONDS columns activity line
    set +e
    while kill -0 $$ 2>/dev/null; do
        columns=$(stty size <&1 2>/dev/null | cut -d' ' -f2)
        activity=$(tail -n "+$from" "$LOG" | tail -c 2000 | tr '\r\t' '\n ' |
            sed 's/\x1b\[[0-9;]*[A-Za-z]//g; s/^ *//; /^$/d' | tail -n 1)
        line="$title  $((SECONDS - began)) s  $activity"
        printf '\r.. %s\e[K' "${line:0:$((${columns:-80} - 4))}"
        sleep 0.3
    done
}

stop_painter() {
    [ -n "$PAINTER" ] || return 0
    kill "$PAINTER" 2>/dev/null || true
    wait "$PAINTER" 2>/dev/null || true
    PAINTER=''
    printf '\r\e[K'
}
trap stop_painter EXIT
