#!/usr/bin/env bash
# Table 6.5 of Peng (2022) with skip-gram vectors of free text: rows of table-6.5.sh.
exec "$(dirname "$0")/table-6.5.sh" --table 6.5-skip-gram "$@"
