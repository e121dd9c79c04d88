#!/bin/bash
# Removes the documents of Debian's packages below ROOT, but not their licences: documents.sh ROOT
#
# The licences of most packages ask that their text goes with the program. A folder of /usr/share/doc that is a link
# leads to that of the package which has the text.
set -euo pipefail
root=${1%/}
rm -rf "$root/usr/share/man"
find "$root/usr/share/doc" -mindepth 2 ! -type d ! -name copyright -delete
find "$root/usr/share/doc" -mindepth 1 -depth -type d -empty -delete
