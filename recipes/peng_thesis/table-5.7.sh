#!/usr/bin/env bash
# Table 5.7 of Peng (2022), ways to bound the memory: rows BASE, Window, Cluster and MLP-* of table-4.4.sh at scale paper.
exec "$(dirname "$0")/table-4.4.sh" --table 5.7 "$@"
