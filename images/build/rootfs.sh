#!/bin/bash
# Writes everything of ours that an image holds under a directory: rootfs.sh ROOT operator|spark [libraries|ours]
#
# ROOT may be empty (the Containerfiles copy it over a Debian) or hold a Debian already (the tests on a real node,
# which have no registry). $PYTHON, default python3, is the Python that runs this: the same minor version as in the
# image, with what locks/build.txt has, and pyspark; a JDK compiles the shim. $LOCK, default that of the image
# in locks, has every library with its version and digests. Nothing outside ROOT is written.
#
# With a third word it writes a part: the libraries, which change with the locks alone, or ours beside them.
#
#   /opt/headgate       the package and its libraries, one flat directory for PYTHONPATH
#   /opt/headgate/bin   headgate; headgate-run (spark)
#   /opt/headgate/headgate-KIND.cdx.json   what all of this is, as scanners read it
#   /opt/spark          SPARK_HOME: the PySpark in /opt/headgate (spark)
#   /opt/entrypoint.sh  what Spark on Kubernetes calls (spark)
#   /opt/decom.sh       what it calls before an executor is stopped (spark)
#   /opt/app            where a derived image puts the job (spark)
set -euo pipefail
mkdir -p "$1"
root=$(cd "$1" && pwd) kind=$2 part=${3:-everything}
source=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3} lock=${LOCK:-$source/locks/$kind.txt}
libraries=$root/opt/headgate

# What no driver, no executor and no operator loads.
unneeded=(
  numpy/tests numpy/_core/tests pandas/tests pyarrow/tests pyarrow/include pyarrow/src
  pyspark/data pyspark/examples pyspark/sbin pyspark/jars/connect-repl
)

main() {
  if [[ $part != ours ]]; then install_libraries; fi
  if [[ $part != libraries ]]; then install_ours; fi
}

install_libraries() {
  rm -rf "$libraries"
  mkdir -p "$libraries"
  "$python" -m pip install --quiet --no-compile --no-build-isolation --target "$libraries" \
    --require-hashes --requirement "$lock"
  rm -rf "$libraries/bin"  # pip's own launchers name the Python that ran pip
  (cd "$libraries" && rm -rf "${unneeded[@]}")
  find "$libraries" -type f \( -name '*.cmd' -o -name '*.pyi' -o -name '*.pxd' \) -delete
  echo "$libraries" | compile
}

install_ours() {
  local wheels
  wheels=$(mktemp -d)
  trap "rm -rf '$wheels'" EXIT
  "$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$wheels" "$source"
  "$python" -m pip install --quiet --no-compile --no-deps --target "$libraries" "$wheels"/headgate-*.whl
  if [[ $kind == spark ]]; then add_spark; fi
  add_launchers
  "$python" "$source/spark_jobs/shim/image_sbom.py" "$libraries" "$kind"
  sed -n "s|^\([^,]*\.py\),.*|$libraries/\1|p" "$libraries"/headgate-*.dist-info/RECORD | compile
}

add_spark() {
  mkdir -p "$root/opt/app"
  ln -sfn headgate/pyspark "$root/opt/spark"
  install -m 755 "$source/images/entrypoint.sh" "$source/images/decom.sh" "$root/opt"
}

add_launchers() {
  rm -rf "$libraries/bin"
  mkdir "$libraries/bin"
  launcher headgate headgate.cli.main
  if [[ $kind == spark ]]; then launcher headgate-run headgate_spark.launch.command; fi
}

launcher() {
  printf '#!/usr/bin/python3\nfrom %s import main\n\nmain()\n' "$2" > "$libraries/bin/$1"
  chmod 755 "$libraries/bin/$1"
}

# What is named on standard input. Now, since the file system is read-only at run time; by content, since layers do not
# keep the times of files.
compile() {
  "$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$root" -i -
}

main
