package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/doctor"
)

// Verdict is what is found when all is over.
type Verdict struct {
	Violations []string // empty: everything held

	Tasks, Steps, Attempts   int
	States                   map[string]int // of tasks
	Invariants               int            // asked
	Reclaimed                int            // leases that ended and were taken by another delivery
	Retried                  int            // steps that took more than one attempt
	Absorbed                 map[string]int // by reason
	DeadLetters              map[string]int // by reason
	Repairs, Deadlocks       int
	Handled                  int            // calls of handlers, by the ledger
	HandledBy                map[string]int // of each worker
	Calls                    map[string]int // of clients, by operation and outcome
	UnknownCalls, UnknownHad int            // submits with an unknown outcome, and those of them that had arrived
}

// Judge looks at everything when nothing happens any more. history may be nil, when nobody kept one; copied are steps that were sent a second message.
func (s *Stage) Judge(ctx context.Context, history *History, copied map[StepName]bool) (Verdict, error) {
	var v Verdict
	report, err := doctor.Examine(ctx, s.Pool, doctor.Config{AtRest: true, Grace: -time.Second})
	if err != nil {
		return v, err
	}
	v.Invariants = report.Checked
	for _, found := range report.Violations {
		if found.Kind == doctor.Advice {
			continue
		}
		v.Violations = append(v.Violations, fmt.Sprintf("%s (%s): %d times, such as %+v", found.ID, found.Says, found.Count, found.Samples))
	}
	if err := s.figures(ctx, &v); err != nil {
		return v, err
	}
	if v.Repairs > 0 {
		v.Violations = append(v.Violations, fmt.Sprintf("the reconciler had to repair %d times", v.Repairs))
	}
	if v.Deadlocks > 0 {
		v.Violations = append(v.Violations, fmt.Sprintf("there were %d deadlocks", v.Deadlocks))
	}
	if err := s.judgeLedger(ctx, &v, copied); err != nil || history == nil {
		return v, err
	}
	f, err := s.facts(ctx)
	if err != nil {
		return v, err
	}
	v.Violations = append(v.Violations, history.compare(f)...)
	v.Calls, v.UnknownHad = history.summary(f)
	v.UnknownCalls = v.Calls["submit "+string(Unknown)]
	return v, nil
}

func (s *Stage) judgeLedger(ctx context.Context, v *Verdict, copied map[StepName]bool) error {
	entries, err := ReadLedger(s.LedgerFile)
	if err != nil {
		return err
	}
	v.HandledBy = make(map[string]int)
	for _, e := range entries {
		if e.What == "start" {
			v.Handled++
			v.HandledBy[e.Worker]++
		}
	}
	rows, err := s.Pool.Query(ctx, `select task_id::text, step, state::text, attempt, coalesce(result->>'nonce', '') from pawl.steps where handler = 'fire.work'`)
	if err != nil {
		return fmt.Errorf("reading the steps: %w", err)
	}
	defer rows.Close()
	steps := make(map[StepName]Ended)
	for rows.Next() {
		var name StepName
		var e Ended
		if err := rows.Scan(&name.Task, &name.Step, &e.State, &e.Attempt, &e.Nonce); err != nil {
			return fmt.Errorf("reading the steps: %w", err)
		}
		steps[name] = e
	}
	v.Violations = append(v.Violations, CompareLedger(entries, steps, copied)...)
	return rows.Err()
}

// figures counts what the tables hold.
func (s *Stage) figures(ctx context.Context, v *Verdict) error {
	var unexpected []string
	err := s.Pool.QueryRow(ctx, `
		select (select count(*) from pawl.tasks), (select count(*) from pawl.steps), (select coalesce(sum(attempt), 0) from pawl.steps),
			(select coalesce(jsonb_object_agg(state, n), '{}') from (select state, count(*) n from pawl.tasks group by 1) t),
			(select count(*) from pawl.audit a where a.step is not null and a.from_state = 'in_progress' and a.to_state = 'in_progress'),
			(select count(*) from pawl.steps where attempt > 1),
			(select coalesce(jsonb_object_agg(reason, n), '{}') from (select reason, count(*) n from pawl.absorbed group by 1) a),
			(select coalesce(jsonb_object_agg(reason, n), '{}') from (
				select case when message ? 'garbage' then 'garbage: ' else '' end || regexp_replace(reason, '[0-9a-f-]{36}|"[^"]*"|\d+', '…', 'g') as reason, count(*) n
				from pawl.dead_letters group by 1) d),
			(select count(*) from pawl.repairs),
			(select deadlocks from pg_stat_database where datname = current_database()),
			array(select format('dead letter of %s: %s', queue, reason) from pawl.dead_letters
				where message->>'garbage' is null and message->>'worker' is distinct from 'garbage'
					and message->>'template' is distinct from 'fire/no_such_template' limit 10)`).
		Scan(&v.Tasks, &v.Steps, &v.Attempts, &v.States, &v.Reclaimed, &v.Retried, &v.Absorbed, &v.DeadLetters, &v.Repairs, &v.Deadlocks, &unexpected)
	if err != nil {
		return fmt.Errorf("counting: %w", err)
	}
	v.Violations = append(v.Violations, unexpected...)
	return nil
}
