#!/usr/bin/env bash
# Table 5 of Stack Attention, parameters of the context-free language models: figure-2.sh records them.
exec "$(dirname "$0")/figure-2.sh" --table 5 "$@"
