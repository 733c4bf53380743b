package crash

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// moves logs each message that comes into a queue or leaves it, and each trace that a dropped one leaves, with its transaction.
const moves = `
create table pawl_test.moves (kind text, queue text, msg_id bigint, xid xid8 default pg_current_xact_id());
create function pawl_test.moved() returns trigger language plpgsql as $$
begin
  insert into pawl_test.moves (kind, queue, msg_id)
  values (tg_argv[0], tg_argv[1], case tg_argv[0] when 'sent' then (to_jsonb(new)->>'msg_id')::bigint when 'removed' then old.msg_id end);
  return null;
end $$;
create trigger traced after insert on pawl.absorbed for each row execute function pawl_test.moved('trace', 'absorbed');
create trigger traced after insert on pawl.dead_letters for each row execute function pawl_test.moved('trace', 'dead letters');
do $$
declare name text;
begin
  for name in select queue_name from pgmq.meta loop
    execute format('create trigger sent after insert on pgmq.%I for each row execute function pawl_test.moved(''sent'', %L)', 'q_' || name, name);
    execute format('create trigger removed after delete on pgmq.%I for each row execute function pawl_test.moved(''removed'', %L)', 'q_' || name, name);
  end loop;
end $$`

// live are all messages of all queues.
func live(k *kit.Kit) string {
	k.Helper()
	return kit.Get[string](k, `select string_agg(format('select %L::text as queue, msg_id from pgmq.%I', queue_name, 'q_' || queue_name), ' union all ')
		from pgmq.meta`)
}

// watch begins the account of messages: what is there counts as sent.
func watch(k *kit.Kit) {
	k.Helper()
	k.Exec("truncate pawl_test.moves")
	k.Exec("insert into pawl_test.moves (kind, queue, msg_id) select 'sent', queue, msg_id from (" + live(k) + ") m")
}

// accounted asserts what the doctor cannot see (C10, C11): whoever removed a message moved a state, sent another message or
// left a trace in the same transaction; and what was sent and not removed is there. Messages that only ask to look again
// may find nothing to do.
func accounted(t *testing.T, k *kit.Kit, what string) {
	t.Helper()
	require.Empty(t, kit.List[string](k, `select r.queue || ' ' || r.msg_id from pawl_test.moves r
		where r.kind = 'removed' and r.queue not in ('orchestration_step_enqueues', 'orchestration_task_finalizations')
			and not exists (select from pawl.audit a where a.xid = r.xid)
			and not exists (select from pawl_test.moves m where m.xid = r.xid and m.kind in ('sent', 'trace'))`),
		"%s: messages were removed without an effect", what)
	require.Empty(t, kit.List[string](k, `with kept as (
			select queue, msg_id from pawl_test.moves where kind = 'sent' except select queue, msg_id from pawl_test.moves where kind = 'removed'),
		live as (`+live(k)+`)
		(select 'lost: ' || queue || ' ' || msg_id from (table kept except table live) x)
		union all (select 'from nowhere: ' || queue || ' ' || msg_id from (table live except table kept) y)`), "%s: messages do not add up", what)
}
