#!/usr/bin/env bash
# Unit norm against equation 4.10 of Peng (2022): the rows with frequencies of table-A.1-variance.sh.
exec "$(dirname "$0")/table-A.1-variance.sh" --table A.1-unit-norm "$@"
