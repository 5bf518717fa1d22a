#!/usr/bin/env bash
# Table 2.3 of Peng (2022), how joint training changes the trees: made with table 2.1.
exec "$(dirname "$0")/table-2.1.sh" --table 2.3 "$@"
