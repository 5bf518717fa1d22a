#!/usr/bin/env bash
# Table 1 of Stack Attention, parallel time, by the number of operators one after another: table-4.sh records them.
exec "$(dirname "$0")/table-4.sh" --table 1 "$@"
