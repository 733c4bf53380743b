package actors_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
)

// R8: what raises must raise again, alone, before it is a dead letter. One that was alone in its batch, as at low load,
// and one of many alike.
func TestWhatRaisesOnceIsNoDeadLetter(t *testing.T) {
	for name, c := range map[string]struct{ others, raises int }{"alone in its batch": {0, 1}, "one of many": {5, 2}} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			// A sequence remembers what was rolled back: the first and, of many, the first alone raise.
			h.exec(`create sequence pawl.raised`)
			h.exec(`create function pawl.refuse() returns trigger language plpgsql as $$
				begin
				  if new.state = 'complete' and new.step = 'first' and nextval('pawl.raised') <= tg_argv[0]::int then
				    raise exception 'not now';
				  end if;
				  return new;
				end $$`)
			h.exec(fmt.Sprintf(`create trigger refuse before update on pawl.steps for each row execute function pawl.refuse(%d)`, c.raises))
			h.start(actors.Config{})
			h.request()
			for range c.others {
				h.request()
			}
			h.eventually(c.others+1, `select count(*) from pgmq.q_house_queue`)
			h.exec(`with ready as materialized (select task_id from pawl.tasks),
				sent as (select pgmq.send('orchestration_step_results', jsonb_build_object('task_id', task_id, 'step', 'first', 'attempt', 1,
					'status', 'complete', 'result', '{}'::jsonb)) from ready)
				select from sent`)
			h.eventually(c.others+1, `select count(*) from pawl.steps where step = 'first' and state = 'complete'`)
			require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
			require.Zero(t, h.count(`select count(*) from pawl.steps where attempt > 1`))
		})
	}
}
