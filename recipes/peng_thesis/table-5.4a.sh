#!/usr/bin/env bash
# Table 5.4a of Peng (2022): the rows "16 layers ..." of table-4.3.sh.
exec "$(dirname "$0")/table-4.3.sh" --table 5.4a "$@"
