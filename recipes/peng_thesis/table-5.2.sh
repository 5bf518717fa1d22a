#!/usr/bin/env bash
# Table 5.2 of Peng (2022): the rows "writing" and "reading" of table-4.1.sh.
exec "$(dirname "$0")/table-4.1.sh" --table 5.2 "$@"
