#!/usr/bin/env bash
# Table A.1 of Peng (2022), numbers of random matrices: rows "* matrices" of table-4.4.sh at scale paper.
exec "$(dirname "$0")/table-4.4.sh" --table A.1 "$@"
