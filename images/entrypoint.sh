#!/bin/bash
# Entry point of the Spark image, by the words that Spark on Kubernetes passes:
#
#   executor        an executor; everything else is in SPARK_* variables that the driver wrote into the pod
#   driver ARGS…    spark-submit ARGS… in client mode: a job submitted without Headgate
#   COMMAND ARGS…   that command; Headgate's operator says `headgate-run …`
#
# tini is process 1 and passes signals on: without it a stop that comes before the command has its handlers is lost.
set -euo pipefail
tini=(/usr/bin/tini -s --)

main() {
  name_the_user
  case "${1:-}" in
    executor) executor ;;
    driver) driver "${@:2}" ;;
    "") echo "entrypoint.sh: nothing to run; say executor, driver or a command such as headgate-run" >&2; exit 2 ;;
    *) exec "${tini[@]}" "$@" ;;
  esac
}

# A cluster may run the image as any user; Hadoop's login and `getpass` fail for one without a name.
name_the_user() {
  if getent passwd "$(id -u)" > /dev/null; then return; fi
  local library
  library=$(find /usr/lib -name libnss_wrapper.so -print -quit)
  if [[ -z $library ]]; then return; fi
  NSS_WRAPPER_PASSWD=$(mktemp) NSS_WRAPPER_GROUP=$(mktemp)
  echo "headgate:x:$(id -u):$(id -g)::/tmp:/usr/sbin/nologin" > "$NSS_WRAPPER_PASSWD"
  echo "headgate:x:$(id -g):" > "$NSS_WRAPPER_GROUP"
  export NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP LD_PRELOAD=$library
}

driver() {
  local bind=${SPARK_DRIVER_BIND_ADDRESS:?is set by Spark on a driver pod}
  exec "${tini[@]}" "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
    --conf "spark.driver.bindAddress=$bind" --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$bind" "$@"
}

executor() {
  local options=() name
  for name in $(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4,4n); do options+=("${!name}"); done
  exec "${tini[@]}" "${JAVA_HOME:?}/bin/java" "${options[@]}" \
    "-Xms${SPARK_EXECUTOR_MEMORY:?}" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$(class_path)" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "${SPARK_DRIVER_URL:?}" \
    --executor-id "${SPARK_EXECUTOR_ID:?}" \
    --cores "${SPARK_EXECUTOR_CORES:?}" \
    --app-id "${SPARK_APPLICATION_ID:?}" \
    --hostname "${SPARK_EXECUTOR_POD_IP:?}" \
    --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" \
    --podName "${SPARK_EXECUTOR_POD_NAME:?}"
}

class_path() {
  local path="${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*" extra
  for extra in "${SPARK_EXTRA_CLASSPATH:-}" "${SPARK_CLASSPATH:-}" "${HADOOP_CONF_DIR:-}"; do
    if [[ -n $extra ]]; then path+=":$extra"; fi
  done
  echo "$path"
}

main "$@"
