#!/usr/bin/env bash
# worker.sh QUEUE COMMAND [ARGUMENT…]: reads step messages and gives each to the command, on standard input. What it
# prints, JSON, is the step's result. STEPS=n stops after n steps.
set -euo pipefail
queue=${1:?usage: worker.sh QUEUE COMMAND [ARGUMENT…]}
shift
worker="$(hostname)-$$"
stop=
trap 'stop=1' TERM INT
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export output=$scratch/output complaint=$scratch/complaint # psql reads them: arguments have a limit

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 -v queue="$queue" -v table="q_$queue" -v worker="$worker" "$@" "${PAWL_DATABASE_URL:?}"; }

# Waits up to 5 s for a message, hides it from others for 30 s, and prints its id.
receive() {
  sql <<'SQL'
select msg_id from pgmq.read_with_poll(:'queue', 30, 1, 5, 100);
SQL
}

# Large input and dependencies are left out of messages (by_reference); pawl.step_input has them. A statement of its own:
# the one that waited does not see what came into being meanwhile.
content() {
  sql -v id="$1" <<'SQL'
select case when message ? 'by_reference'
  then message || pawl.step_input((message->>'task_id')::uuid, message->>'step', coalesce((message->>'index')::int, 0))
  else message end
from pgmq.:"table" where msg_id = :id;
SQL
}

# Both send the result, which names the attempt that it ends, and remove the message: both or neither.
complete() {
  sql -v id="$1" <<'SQL'
\set result `cat "$output"`
begin;
select from pgmq.:"table" q, pgmq.send('orchestration_step_results', jsonb_build_object('v', 1, 'worker', :'worker',
  'task_id', q.message->'task_id', 'step', q.message->'step', 'index', coalesce(q.message->'index', '0'),
  'attempt', q.message->'attempt', 'status', 'complete', 'result', :'result'::jsonb)) where q.msg_id = :id;
select from pgmq.delete(:'queue', :id);
commit;
SQL
}
fail() { # MESSAGE TYPE RETRYABLE
  sql -v id="$1" -v type="$2" -v retryable="$3" <<'SQL'
\set problem `head -c 2000 "$complaint" | tr -d '\000' | iconv -c -f UTF-8 -t UTF-8 2>/dev/null; true`
begin;
select from pgmq.:"table" q, pgmq.send('orchestration_step_results', jsonb_build_object('v', 1, 'worker', :'worker',
  'task_id', q.message->'task_id', 'step', q.message->'step', 'index', coalesce(q.message->'index', '0'),
  'attempt', q.message->'attempt', 'status', 'failed', 'error', jsonb_build_object(
    'type', :'type', 'message', :'problem', 'retryable', :'retryable'::boolean))) where q.msg_id = :id;
select from pgmq.delete(:'queue', :id);
commit;
SQL
}

for ((n = 0; n < ${STEPS:-1000000000}; n++)); do
  id=
  while [[ -z $id ]]; do
    [[ -z $stop ]] || exit 0
    id=$(receive)
  done
  code=0
  content "$id" >"$scratch/message"
  "$@" <"$scratch/message" >"$output" 2>"$complaint" || code=$?
  case $code in
    0) complete "$id" 2>"$complaint" >/dev/null || fail "$id" invalid_result false >/dev/null ;;
    65) fail "$id" invalid_input false >/dev/null ;;
    *) fail "$id" "exit_$code" true >/dev/null ;;
  esac
done
