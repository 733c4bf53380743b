#!/usr/bin/env bash
# wait.sh TASK: waits until a task has ended and prints its result; fails with its error when it did not complete.
set -euo pipefail
task=${1:?usage: wait.sh TASK}

while :; do
  row=$(psql -X -q -A -t -v ON_ERROR_STOP=1 -v task="$task" "${PAWL_DATABASE_URL:?}" <<'SQL'
select state, coalesce(result, error) from pawl.tasks where task_id = :'task' and finalized_at is not null;
SQL
  )
  case $row in
    "") sleep 0.2 ;;
    complete\|*) echo "${row#*|}"; exit 0 ;;
    *) echo "task $task is ${row%%|*}: ${row#*|}" >&2; exit 1 ;;
  esac
done
