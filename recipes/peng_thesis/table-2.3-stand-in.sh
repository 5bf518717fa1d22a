#!/usr/bin/env bash
# Table 2.3-stand-in, after Peng (2022): how joint training changes the trees: made with table 2.1-stand-in.
exec "$(dirname "$0")/table-2.1-stand-in.sh" --table 2.3-stand-in "$@"
