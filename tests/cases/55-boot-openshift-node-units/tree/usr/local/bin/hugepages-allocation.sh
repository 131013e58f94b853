#!/usr/bin/env bash
set -euo pipefail
nodes_path="/sys/devices/system/node"
hugepages_file="${nodes_path}/node${NUMA_NODE}/hugepages/hugepages-${HUGEPAGES_SIZE}kB/nr_hugepages"
echo "${HUGEPAGES_COUNT}" > "${hugepages_file}"
