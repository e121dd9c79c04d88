#!/bin/bash
# Adds the user that the images run as: user.sh ROOT
#
# 185 is the user of Spark's own images, so that files written by those can be read by ours. Group 0, as OpenShift runs
# any user in it.
set -euo pipefail
root=${1%/}
grep -q '^headgate:' "$root/etc/passwd" || echo 'headgate:x:185:0::/opt/headgate:/usr/sbin/nologin' >> "$root/etc/passwd"
