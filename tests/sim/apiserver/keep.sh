#!/usr/bin/env bash
# keep.sh ARCHIVE FILE: copies the archive to FILE, whole or not at all, and removes all but the three newest beside it.
set -euo pipefail
archive=$1
file=$2
folder=$(dirname "$file")
mkdir -p "$folder"
cp "$archive" "$file.$$"
mv "$file.$$" "$file"
find "$(dirname "$folder")" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2- | xargs -r rm -rf
