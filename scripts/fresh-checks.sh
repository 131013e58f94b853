# shellcheck shell=bash
# What ./dev fresh reads out of README.md, cargo's configuration, and the output of ./dev demo and ./dev test.

# Prints the commands of the first block under "Try it" in README.md, which it reads.
readme_commands() {
    awk '/^## /{in_section = /^## Try it/} in_section && /^```/{in_block = !in_block; if (!in_block) exit; next} in_block'
}

# Prints the sections of a cargo configuration that lead to the crates; the others are this machine's own matter.
network_settings() {
    awk '/^\[/{keep = /^\[(source|registry|registries|http|net)[].]/} keep'
}

# Reads the output of ./dev demo; says what it misses, if anything: that the server landed, did not, and landed again. In a
# container one row, and why not three.
demo_misses() {    # STATE
    local output rows
    output=$(cat)
    rows=$(sed -n 's/^shared_buffers_in_huge_pages *| *\([tf]\)$/\1/p' <<<"$output" | tr -d '\n')
    if [ "$1" = container ]; then
        [[ ${#rows} -eq 1 && $output == *"Can't reserve huge pages: "* ]] ||
            echo "one row and why it can't reserve pages were not shown (shared_buffers_in_huge_pages: ${rows:-no row at all})"
    elif [ "$rows" != tft ]; then
        echo "its three rows were not shown (shared_buffers_in_huge_pages: ${rows:-no row at all}, not tft)"
    fi
}

# Reads the output of ./dev test in a starting state; says which tests were skipped and are not in tests/skips.txt.
test_misses() {    # STATE
    local output unlisted
    output=$(cat)
    [ -n "$(test_numbers <<<"$output")" ] || { echo "no line says how many tests passed" && return; }
    unlisted=$(skips <<<"$output" | sort -u | grep -vFf <(listed_skips "$1")) || true
    [ -z "$unlisted" ] || printf 'skipped, and not listed in tests/skips.txt:\n%s\n' "$unlisted"
}

# Prints what pytest -ra says of each skipped test, cargo of each ignored one, and ./dev test at its end.
skips() {
    sed -n 's/^SKIPPED \[[0-9]*\] //p; s/^test \(.* \.\.\. ignored\)/\1/p; /^Skipped:$/,/^$/s/^ *[0-9][0-9]* x //p'
}

listed_skips() {    # STATE
    awk -F ' *[|] *' -v state="$1" '!/^#/ && ($1 == "any" || $1 == state) && $2 != "" && $3 != "" {print $2}' tests/skips.txt
}

# Prints "N passed, N skipped" of the last line that tells: pytest's, or that of ./dev test after it.
test_numbers() {
    sed -n -E '/^=+ .* in [0-9.]+s/{/ [0-9]+ skipped/!s/ in [0-9.]+s/, 0 skipped&/
        s/.* ([0-9]+ passed).* ([0-9]+ skipped).*/\1, \2/p}
        s/^([0-9]+ passed), [0-9]+ failed, ([0-9]+ skipped)$/\1, \2/p' | tail -n 1
}
