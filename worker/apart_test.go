package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// payments makes a table of the user's whose rows the step pay of billing/pay claims, and whose trigger lets no row leave the
// state that it is claimed in, with an SQLSTATE.
func payments(k *kit, code string) (task uuid.UUID) {
	k.Helper()
	for _, sql := range []string{
		`create table invoices (number text primary key, status text not null, version int not null default 1)`,
		`insert into invoices values ('A-1', 'sent', 1)`,
		fmt.Sprintf(`create function refuse() returns trigger language plpgsql as
			$$ begin raise exception 'not this one' using errcode = '%s'; end $$`, code),
		`create trigger refuse before update on invoices for each row when (old.status = 'paying') execute function refuse()`,
		`select pawl.register_entity('invoice', '{"table": "invoices", "key": "number", "status": "status", "version": "version",
			"module": "billing", "states": ["sent", "paying", "paid"], "claim_limit": "5 minutes"}', 'ann', 'payments are claimed')`,
		`select pawl.beat_janitor('billing')`,
		`select pawl.register_template('{"namespace": "billing", "name": "pay", "version": "1", "steps": [{"no": 0, "name": "run",
			"handler": "pay", "queue": "pay_queue", "claim": {"default": {"entity": "invoice", "id": "${input.invoice}", "from": "sent",
			"into": "paying", "revert_to": "sent", "on_success": "paid", "on_busy": "fail"}}}]}')`,
	} {
		_, err := k.pool.Exec(k.Context(), sql)
		require.NoError(k, err, sql)
	}
	var messages string
	require.NoError(k, k.pool.QueryRow(k.Context(), `select jsonb_build_array(jsonb_build_object('msg_id',
		pgmq.send('orchestration_task_requests', '{"template": "billing/pay", "input": {"invoice": "A-1"}}'),
		'template_id', (select template_id from pawl.templates where name = 'pay')))::text`).Scan(&messages))
	return k.process(messages)[0]
}

func TestAReportThatTheUsersTableRefusesHoldsUpNoOther(t *testing.T) {
	for code, after := range map[string]string{
		"23514": "complete", "23505": "complete", "P0001": "complete",
		"42501": "complete", "42P01": "complete", "42883": "complete", // Pawl's own functions raise them too, then for all
		"22012": "error", // could be the result's fault: a failure is reported in its place, and refused as well
	} {
		t.Run(code, func(t *testing.T) {
			k := newKit(t)
			refused := payments(k, code)
			log := new(lockedBuffer)
			w := k.worker(worker.Config{Log: slog.New(slog.NewTextHandler(log, nil))}, "pay_queue")
			paid := make(chan struct{}, 1)
			worker.Handle(w, "pay", func(context.Context, worker.Step[any]) (any, error) {
				paid <- struct{}{}
				return "paid", nil
			})
			worker.Handle(w, "other", func(context.Context, worker.Step[any]) (any, error) { return 1, nil })
			others := k.submit("other", "pay_queue", 1, 2, 3)
			k.start(w)
			receive(k, paid, "the payment")
			for _, other := range append(others, k.submit("other", "pay_queue", 4)...) {
				k.await(other, "complete")
			}
			require.Equal(t, "in_progress", k.step(refused, "run").State)
			k.eventually(func() bool { return strings.Contains(log.String(), "it failed, it is tried again while others go on") })
			require.Equal(t, strings.HasPrefix(code, "42"), strings.Contains(log.String(), "or a trigger of the claimed row lacks it"))
			_, err := k.pool.Exec(t.Context(), `drop trigger refuse on invoices`)
			require.NoError(t, err)
			require.Equal(t, 1, k.await(refused, after).Deliveries)
			require.Zero(t, k.count(`select count(*) from pawl.entity_claims`))
		})
	}
}

func TestReportsThatNobodyMayMakeAreMadeLater(t *testing.T) {
	k := newKit(t)
	paid := payments(k, "00000")
	_, err := k.pool.Exec(t.Context(), `drop trigger refuse on invoices`)
	require.NoError(t, err)
	log := new(lockedBuffer)
	w := k.worker(worker.Config{Log: slog.New(slog.NewTextHandler(log, nil))}, "pay_queue")
	entered, release := make(chan struct{}, 2), make(chan struct{})
	for _, name := range []string{"pay", "other"} {
		worker.Handle(w, name, func(context.Context, worker.Step[any]) (any, error) {
			entered <- struct{}{}
			<-release
			return "done", nil
		})
	}
	other := k.submit("other", "pay_queue", nil)[0]
	k.start(w)
	receive(k, entered, "a handler")
	receive(k, entered, "the other handler")
	_, err = k.pool.Exec(t.Context(), `alter function pawl.read_reports(jsonb) rename to read_reports_away`)
	require.NoError(t, err)
	close(release)
	late := k.submit("other", "pay_queue", nil)[0]
	k.eventually(func() bool { return strings.Contains(log.String(), "calling the database: it failed, trying again") })
	_, err = k.pool.Exec(t.Context(), `alter function pawl.read_reports_away(jsonb) rename to read_reports`)
	require.NoError(t, err)
	for _, task := range []uuid.UUID{paid, other, late} {
		require.Equal(t, 1, k.await(task, "complete").Deliveries)
	}
}

func TestALockedMessageHoldsUpNoOther(t *testing.T) {
	k := newKit(t)
	k.queue("tx_queue")
	k.template("long", "tx_queue")
	k.template("book", "tx_queue")
	k.leases("long", 2*time.Second)
	k.leases("book", 2*time.Second)
	// What a connection leaves behind that was cut before the commit arrived: its transaction goes on, and nobody ends it.
	orphan, err := k.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = orphan.Rollback(context.Background()) })
	w := k.worker(worker.Config{}, "tx_queue")
	locked, release, cut := make(chan error, 1), make(chan struct{}), make(chan struct{})
	worker.Handle(w, "book", func(ctx context.Context, step worker.Step[any]) (any, error) {
		locked <- step.CompleteTx(context.WithoutCancel(ctx), orphan, "booked")
		<-cut
		return nil, errors.New("the connection was cut")
	})
	worker.Handle(w, "long", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		select {
		case <-release:
			return "done", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	worker.Handle(w, "other", func(context.Context, worker.Step[any]) (any, error) { return 1, nil })
	booked, long := k.submit("book", "tx_queue", nil)[0], k.submit("long", "tx_queue", nil)[0]
	k.start(w)
	require.NoError(t, receive(k, locked, "the transaction"))
	k.eventually(func() bool { return k.step(long, "run").State == "in_progress" })

	// Three leases later the other handler has its step yet, and it is the first delivery.
	var began time.Time
	require.NoError(t, k.pool.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&began))
	k.eventually(func() bool {
		return k.count(`select count(*) from pgmq.q_tx_queue q where message->>'handler' = 'long' and read_ct = 1
			and vt > $1::timestamptz + interval '6 s'`, began) == 1
	})

	// The report waits for the lock, and the others pass it.
	close(cut)
	for _, other := range k.submit("other", "tx_queue", 1, 2, 3) {
		k.await(other, "complete")
	}
	close(release)
	r := k.await(long, "complete")
	require.Equal(t, 1, r.Deliveries)
	require.Equal(t, `"done"`, r.Result)
	require.Equal(t, "in_progress", k.step(booked, "run").State)
	require.NoError(t, orphan.Rollback(t.Context()))
	require.Equal(t, "the connection was cut", k.await(booked, "waiting_for_retry").Error.Message)
}
