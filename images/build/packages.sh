#!/bin/bash
# Installs the Debian packages of an image, inside it, and adds its user: packages.sh operator|spark
#
# Everything of ours runs on the distribution's own Python and Java, so that a security fix of either is one rebuild.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive

mkdir -p /usr/share/man/man1   # slim images have none, and the JRE's installation fails without it
apt-get update
xargs -a "$here/$1.packages" apt-get install --yes --no-install-recommends
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
"$here/documents.sh" /
"$here/user.sh" /
