#!/usr/bin/env bash
# The stand-in for table 6 of Stack Attention, the cost of stacks on free data: table-6.sh has its rows.
exec "$(dirname "$0")/table-6.sh" --table 6-stand-in "$@"
