#!/usr/bin/env bash
# producer.sh REQUEST: sends a task request (JSON) and prints the id of the task that it will become.
# Repeating a request with the same request_id makes no second task.
set -euo pipefail
request=${1:?usage: producer.sh \'\{\"template\": \"shop/fulfil_order\", \"input\": \{…\}\}\'}

psql -X -q -A -t -v ON_ERROR_STOP=1 -v request="$request" "${PAWL_DATABASE_URL:?}" <<'SQL'
select message->>'request_id'
from (select jsonb_build_object('request_id', gen_random_uuid()) || :'request'::jsonb as message) request,
  lateral pgmq.send('orchestration_task_requests', message);
SQL
