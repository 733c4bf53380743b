# Sourced by scripts that run workers in other languages than Go: $cache, Node 20 in PATH if set-up put it into the cache, and
# find_python, which prints the interpreter that has psycopg 3.
# shellcheck shell=bash
if [ -n "${PAWL_CACHE_DIR:-}" ]; then cache=$PAWL_CACHE_DIR
elif [ "$(id -u)" = 0 ]; then cache=/var/cache/pawl
elif [ "$(uname)" = Darwin ]; then cache=$HOME/Library/Caches/pawl
else cache=${XDG_CACHE_HOME:-$HOME/.cache}/pawl; fi

if [ -x "$cache/node/bin/node" ]; then PATH=$cache/node/bin:$PATH; fi
if [ -d "$cache/python" ]; then export PYTHONPATH=$cache/python${PYTHONPATH:+:$PYTHONPATH}; fi

find_python() {
  local python
  for python in ${PYTHON:-} python3 /usr/bin/python3; do
    if "$python" -c 'import sys, psycopg; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}
