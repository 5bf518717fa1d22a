#!/usr/bin/env bash
# The stand-in of table 4.3 of Peng (2022): scale small of table-4.3.sh.
exec "$(dirname "$0")/table-4.3.sh" --table 4.3-stand-in "$@"
