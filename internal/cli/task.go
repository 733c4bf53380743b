package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

func (a *app) taskCommand() *cobra.Command {
	return group("task", "List, show, explain, wait for and move tasks",
		`A task is one run of a template. A task is named by its id, or by the beginning of it when that is unambiguous.

States: pending, initializing, enqueuing_steps, steps_in_process, waiting_for_retry, waiting_for_dependencies,
evaluating_results, blocked_by_failures; final: complete, error, cancelled, timed_out, resolved_manually.`,
		a.taskList(), a.taskShow(), a.taskExplain(), a.taskHistory(), a.taskWait(),
		a.taskCancel(), a.taskRetry(), a.taskResolve())
}

// taskRow is a task as lists show it.
type taskRow struct {
	TaskID      string     `json:"task_id"`
	Template    string     `json:"template"`
	State       string     `json:"state"`
	Status      string     `json:"status"`
	Key         *string    `json:"key,omitempty"`
	Steps       int        `json:"steps"`
	Open        int        `json:"open_steps"`
	Failed      int        `json:"failed_steps"`
	RequestedAt time.Time  `json:"requested_at"`
	FinalizedAt *time.Time `json:"finalized_at,omitempty"`
}

const taskColumns = `t.task_id::text as task_id, t.namespace || '/' || t.template || '@' || t.version as template, t.state::text as state,
	pawl.public_status(t.state) as status, t.key, coalesce(d.step_count, t.open_count) as steps, t.open_count as open,
	t.failed_count as failed, t.requested_at, t.finalized_at`

const taskTables = ` from pawl.tasks t left join pawl.templates d using (template_id) `

func (t taskRow) final() bool { return t.FinalizedAt != nil }

func (t taskRow) took() string {
	end := time.Now()
	if t.FinalizedAt != nil {
		end = *t.FinalizedAt
	}
	return span(max(0, end.Sub(t.RequestedAt)))
}

func readTasks(ctx context.Context, pool *pgxpool.Pool, where string, args ...any) ([]taskRow, error) {
	rows, err := pool.Query(ctx, `select `+taskColumns+taskTables+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[taskRow])
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	return list, nil
}

var idPrefix = regexp.MustCompile(`^[0-9a-f-]{4,36}$`)

// findTask turns what the user typed into the id of one task.
func findTask(ctx context.Context, pool *pgxpool.Pool, typed string) (uuid.UUID, error) {
	typed = strings.ToLower(strings.TrimSpace(typed))
	hint := "pawl task list shows the latest"
	if id, err := uuid.Parse(typed); err == nil {
		var there bool
		if err := pool.QueryRow(ctx, "select exists (select from pawl.tasks where task_id = $1)", id).Scan(&there); err != nil {
			return id, fmt.Errorf("reading task %s: %w", id, err)
		}
		if !there {
			return id, notFoundf(hint, "there is no task %s", id)
		}
		return id, nil
	}
	if !idPrefix.MatchString(typed) {
		return uuid.Nil, usagef("task %q: a task is named by its id or at least the first 4 characters of it", typed)
	}
	const least, most = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	low, lowErr := uuid.Parse(typed + least[len(typed):])
	high, highErr := uuid.Parse(typed + most[len(typed):])
	if errors.Join(lowErr, highErr) != nil {
		return uuid.Nil, usagef("task %q: that is not the beginning of a task id", typed)
	}
	rows, err := pool.Query(ctx, "select task_id from pawl.tasks where task_id between $1 and $2 limit 2", low, high)
	if err != nil {
		return uuid.Nil, fmt.Errorf("looking for task %s: %w", typed, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	switch {
	case err != nil:
		return uuid.Nil, fmt.Errorf("looking for task %s: %w", typed, err)
	case len(ids) == 0:
		return uuid.Nil, notFoundf(hint, "there is no task whose id begins with %s", typed)
	case len(ids) > 1:
		return uuid.Nil, usagef("several tasks have ids that begin with %s: give more of it", typed)
	}
	return ids[0], nil
}

// taskDetail is everything `task show` tells about a task itself.
type taskDetail struct {
	taskRow
	Requester   *string         `json:"requester,omitempty"`
	Correlation *string         `json:"correlation_id,omitempty"`
	ReplyTo     *string         `json:"reply_to,omitempty"`
	Tags        json.RawMessage `json:"tags,omitempty"`
	Epoch       *int            `json:"epoch,omitempty"`
	DueAt       *time.Time      `json:"due_at,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Error       json.RawMessage `json:"error,omitempty"`
	StepRows    []stepRow       `json:"step_list,omitempty" db:"-"`
}

type stepRow struct {
	Step       string          `json:"step"`
	Index      int             `json:"index"`
	State      string          `json:"state"`
	Handler    string          `json:"handler"`
	Queue      string          `json:"queue"`
	Attempt    int             `json:"attempt"`
	Deliveries int             `json:"deliveries"`
	Worker     *string         `json:"worker,omitempty"`
	Since      time.Time       `json:"state_since"`
	DueAt      *time.Time      `json:"due_at,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
}

func readTask(ctx context.Context, pool *pgxpool.Pool, id uuid.UUID) (taskDetail, error) {
	rows, err := pool.Query(ctx, `select `+taskColumns+`, t.requester, t.correlation_id as correlation, t.reply_to, t.tags, t.epoch,
		t.due_at, t.input, t.result, t.error`+taskTables+`where t.task_id = $1`, id)
	if err != nil {
		return taskDetail{}, fmt.Errorf("reading task %s: %w", id, err)
	}
	t, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[taskDetail])
	if errors.Is(err, pgx.ErrNoRows) {
		return t, notFoundf("pawl task list shows the latest", "there is no task %s", id)
	} else if err != nil {
		return t, fmt.Errorf("reading task %s: %w", id, err)
	}
	rows, err = pool.Query(ctx, `select s.step, s.index, s.state::text as state, s.handler, s.queue, s.attempt, s.deliveries, s.worker,
		s.state_since as since, s.due_at, s.result, s.error
		from pawl.steps s left join pawl.template_steps d using (template_id, step)
		where s.task_id = $1 order by d.position nulls last, s.step, s.index`, id)
	if err != nil {
		return t, fmt.Errorf("reading the steps of task %s: %w", id, err)
	}
	if t.StepRows, err = pgx.CollectRows(rows, pgx.RowToStructByName[stepRow]); err != nil {
		return t, fmt.Errorf("reading the steps of task %s: %w", id, err)
	}
	return t, nil
}
