#!/usr/bin/env bash
# The stand-in of table 5.6 of Peng (2022): scale small of table-5.6.sh.
exec "$(dirname "$0")/table-5.6.sh" --table 5.6-stand-in "$@"
