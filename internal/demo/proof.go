package demo

import (
	"context"
	"fmt"
	"strings"
)

// check is one promise and what the tables say about it.
type check struct {
	ok   bool
	text string
}

// facts are read from the tables after the run, in one query each.
type facts struct {
	tasks, complete, refused, twice                  int
	charges, charged, chargedOften                   int
	chargedCents, pricedCents                        int64
	reserved, ordered                                int64
	parcels, carrier, letters, mail                  int
	absorbed, refusedEarly, completeSteps            int
	deliveredAgain, extraAttempts                    int
	deadLetters, deadlocks, repairs, steps, messages int
	byWorker                                         map[string]int // steps completed
}

// prove reads the facts and prints what they show; ErrNotProven when it is not what was promised.
func (r *run) prove(ctx context.Context) error {
	f, err := r.readFacts(ctx)
	if err != nil {
		return err
	}
	r.say("\nWhat the tables say:")
	good := true
	for _, c := range r.checks(f) {
		mark := "✓"
		if !c.ok {
			mark, good = "✗", false
		}
		r.say("  %s %s", mark, c.text)
	}
	took := r.ended.Sub(r.started)
	r.say("\n%d orders and %d steps in %.1f s: %.0f tasks and %.0f steps a second (%s)", f.tasks, f.steps, took.Seconds(),
		float64(f.tasks)/took.Seconds(), float64(f.steps)/took.Seconds(), r.pace())
	if !good {
		return ErrNotProven
	}
	return nil
}

func (r *run) pace() string {
	if r.config.Rate < 0 {
		return "sent as fast as they went"
	}
	return fmt.Sprintf("sent at %d a second; make bench measures", r.config.Rate)
}

func (r *run) checks(f facts) []check {
	n, repeats := len(r.orders), repeated(r.requests)
	finished := fmt.Sprintf("every order finished once: %d orders, %d tasks, %d complete", n, f.tasks, f.complete)
	if f.refused > 0 {
		finished += fmt.Sprintf(", %d refused by validate", f.refused)
	}
	return []check{
		{f.tasks == n && f.complete+f.refused == n && f.twice == 0, finished},
		{f.charges == f.complete && f.charged == f.complete && f.chargedOften == 0 && f.chargedCents == f.pricedCents,
			fmt.Sprintf("every order charged once: %d charges, %d.%02d EUR, equal to the sum of the prices", f.charges, f.chargedCents/100, f.chargedCents%100)},
		{f.reserved == f.ordered, fmt.Sprintf("stock reserved once: %d pieces ordered, %d reserved", f.ordered, f.reserved)},
		{f.parcels == f.complete && f.letters == f.complete,
			fmt.Sprintf("%d parcels and %d messages; carrier and mail heard %d calls, the step's token sorted out %d repeated ones",
				f.parcels, f.letters, f.carrier+f.mail, f.carrier+f.mail-f.parcels-f.letters)},
		{f.absorbed == repeats && f.refusedEarly == 0, fmt.Sprintf("%d repeated requests, %d absorbed", repeats, f.absorbed)},
		{f.messages == 0 && f.deadLetters == 0, fmt.Sprintf("%d messages left in the queues, %d dead letters", f.messages, f.deadLetters)},
		r.languagesCheck(f),
		{r.kills() == len(r.victims()) && f.repairs == 0 && f.deadlocks == 0,
			fmt.Sprintf("%d processes killed: %d steps delivered again, %d failed attempts, %d repairs, %d deadlocks",
				r.kills(), f.deliveredAgain, f.extraAttempts, f.repairs, f.deadlocks)},
	}
}

// languagesCheck counts completed steps by the language of the worker that the audit names. Every worker must have had its
// share of them.
func (r *run) languagesCheck(f facts) check {
	byLanguage, sum, idle := map[string]int{}, 0, false
	for _, p := range r.processes {
		if p.language == "" {
			continue
		}
		n := f.byWorker[p.name]
		byLanguage[p.language] += n
		sum += n
		idle = idle || n == 0 && f.complete > 0
	}
	var shares []string
	for _, language := range Languages {
		if n := byLanguage[language]; n > 0 {
			shares = append(shares, fmt.Sprintf("%d in %s", n, title[language]))
		}
	}
	return check{sum == f.completeSteps && !idle, fmt.Sprintf("%d steps completed: %s", f.completeSteps, strings.Join(shares, ", "))}
}

func (r *run) kills() int {
	n := 0
	for _, p := range r.processes {
		n += p.kills
	}
	return n
}

func (r *run) readFacts(ctx context.Context) (facts, error) {
	var f facts
	for _, q := range []struct {
		sql string
		to  []any
	}{
		{`select count(*), count(*) filter (where state = 'complete'),
			count(*) filter (where state = 'error' and exists (select from pawl.steps s where s.task_id = t.task_id and s.step = 'validate' and s.state = 'error')),
			count(*) - count(distinct input->>'order_id') from pawl.tasks t`, []any{&f.tasks, &f.complete, &f.refused, &f.twice}},
		{`select count(*), count(distinct order_id), count(*) - count(distinct order_id), coalesce(sum(amount_cents), 0) from shop.charges`,
			[]any{&f.charges, &f.charged, &f.chargedOften, &f.chargedCents}},
		{`select coalesce(sum((s.result->>'total_cents')::bigint), 0) from pawl.steps s join pawl.tasks t using (task_id)
			where s.step = 'price' and t.state = 'complete'`, []any{&f.pricedCents}},
		{`select coalesce(sum((i->>'quantity')::bigint), 0) from pawl.tasks t, jsonb_array_elements(t.input->'items') i where t.state = 'complete'`,
			[]any{&f.ordered}},
		{`select coalesce(sum(quantity), 0) from shop.reservations`, []any{&f.reserved}},
		{`select (select count(*) from shop.parcels), (select count(*) from shop.messages),
			count(*) filter (where service = 'carrier'), count(*) filter (where service = 'mail') from shop.calls`,
			[]any{&f.parcels, &f.letters, &f.carrier, &f.mail}},
		{`select count(*) from pawl.absorbed where queue = 'orchestration_task_requests'`, []any{&f.absorbed}},
		{`select count(*) filter (where deliveries > 1), coalesce(sum(greatest(attempt - 1, 0)), 0), count(*) filter (where state = 'complete'),
			count(*) from pawl.steps where state <> 'cancelled'`, []any{&f.deliveredAgain, &f.extraAttempts, &f.completeSteps, &f.steps}},
		{`select coalesce(jsonb_object_agg(processor, n), '{}') from (select coalesce(processor, '') as processor, count(*) as n from pawl.audit
			where step is not null and to_state = 'complete' group by 1) of`, []any{&f.byWorker}},
		{`select count(*), count(*) filter (where queue = 'orchestration_task_requests') from pawl.dead_letters`, []any{&f.deadLetters, &f.refusedEarly}},
		{`select coalesce(sum(m.queue_length), 0) from pawl.queues q, pgmq.metrics(q.queue) m`, []any{&f.messages}},
		{`select deadlocks from pg_stat_database where datname = current_database()`, []any{&f.deadlocks}},
		{`select count(*) from pawl.repairs`, []any{&f.repairs}},
	} {
		if err := r.pool.QueryRow(ctx, q.sql).Scan(q.to...); err != nil {
			return f, fmt.Errorf("reading what happened: %w", err)
		}
	}
	return f, nil
}
