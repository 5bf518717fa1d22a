#!/usr/bin/env bash
# The stand-in of table 4.5 of Peng (2022), on short formulas: scale small of table-4.5.sh.
exec "$(dirname "$0")/table-4.5.sh" --table 4.5-stand-in "$@"
