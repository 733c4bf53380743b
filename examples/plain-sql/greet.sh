#!/usr/bin/env bash
# A handler: a step message on standard input, a result on standard output. Real ones read JSON with jq or a language.
set -euo pipefail
message=$(cat)
if [[ $message =~ \"name\":\ \"([^\"\\]+)\" ]]; then
  echo "{\"greeting\": \"Hello, ${BASH_REMATCH[1]}!\"}"
else
  echo "the input has no name" >&2
  exit 65 # for good: trying again will not help
fi
