#!/usr/bin/env bash
# The stand-in of table 4.5 of Peng (2022), on short formulas: scale small of table-4.5.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/table-4.5.sh" "$@"
