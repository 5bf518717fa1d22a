#!/usr/bin/env bash
# Table 5.4b of Peng (2022): the rows "32 layers ..." of table-4.3.sh.
exec "$(dirname "$0")/table-4.3.sh" --table 5.4b "$@"
