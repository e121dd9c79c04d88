#!/bin/bash
# What the kubelet runs in an executor's container before it stops it, where spark.decommission.enabled is true: the
# executor takes no new task and ends once it has none, and the driver takes that for no failure.
#
#   decom.sh [PROC]   PROC, default /proc: where the processes are
#
# What takes longer than the grace period of the pod is cut off, as it would be at once without this.
set -euo pipefail
for process in "${1:-/proc}"/[0-9]*; do
  # tini has the executor's words too, and passes signals on: it would be asked twice.
  if [[ $(cat "$process/comm" 2> /dev/null) == java ]] && grep -q KubernetesExecutorBackend "$process/cmdline"; then
    kill -s PWR "${process##*/}"
    tail --pid="${process##*/}" --sleep-interval=0.2 -f /dev/null
  fi
done
