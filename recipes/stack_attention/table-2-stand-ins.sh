#!/usr/bin/env bash
# Free stand-ins for the corpus of table 2 of Stack Attention: table-2.sh has their rows.
exec "$(dirname "$0")/table-2.sh" --table 2-stand-ins "$@"
