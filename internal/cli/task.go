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

func readTasks(ctx context.Context, db *database, where string, args ...any) ([]taskRow, error) {
	rows, err := db.Query(ctx, `select `+taskColumns+taskTables+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[taskRow])
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	return list, nil
}

var (
	idPrefix = regexp.MustCompile(`^[0-9a-f-]{4,36}$`)
	idSuffix = regexp.MustCompile(`^[0-9a-f-]{0,36}$`)
)

// findTask turns what the user typed into the id of one task.
func findTask(ctx context.Context, db *database, typed string) (uuid.UUID, error) {
	typed = strings.ToLower(strings.TrimSpace(typed))
	hint := "pawl task list shows the latest"
	if id, err := uuid.Parse(typed); err == nil {
		return id, known(ctx, db, id)
	}
	typed, end, _ := strings.Cut(typed, "…") // as watch shows ids: 01a2011a…2a12
	if !idPrefix.MatchString(typed) || !idSuffix.MatchString(end) {
		return uuid.Nil, usagef("task %q: a task is named by its id or at least the first 4 characters of it", typed)
	}
	const least, most = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	low, lowErr := uuid.Parse(typed + least[len(typed):])
	high, highErr := uuid.Parse(typed + most[len(typed):])
	if errors.Join(lowErr, highErr) != nil {
		return uuid.Nil, usagef("task %q: that is not the beginning of a task id", typed)
	}
	list, err := readTasks(ctx, db, "where t.task_id between $1 and $2 and t.task_id::text like '%' || $3 order by t.task_id desc limit 6", low, high, end)
	switch {
	case err != nil:
		return uuid.Nil, err
	case len(list) == 0:
		return uuid.Nil, notFoundf(hint, "there is no task whose id begins with %s", typed)
	case len(list) > 1:
		return uuid.Nil, ambiguous(typed, list)
	}
	return uuid.Parse(list[0].TaskID)
}

// ambiguous shows what the beginning of an id may mean: ids begin with the time, so tasks of one minute look alike.
func ambiguous(typed string, list []taskRow) error {
	hint := "Give more of it:"
	for _, t := range list[:min(5, len(list))] {
		hint += fmt.Sprintf("\n%s  %s  %s", t.TaskID, t.Template, t.State)
		if t.Key != nil {
			hint += "  key " + *t.Key
		}
	}
	if len(list) > 5 {
		hint += "\n…"
	}
	return &failure{code: ExitUsage, err: fmt.Errorf("several tasks have ids that begin with %s", typed), hint: hint}
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
	Failures   int             `json:"failures"`
	Deliveries int             `json:"deliveries"`
	Worker     string          `json:"worker,omitempty"`
	Since      time.Time       `json:"state_since"`
	DueAt      *time.Time      `json:"due_at,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
}

// reader is a pool or a transaction.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func readTask(ctx context.Context, db reader, id uuid.UUID) (taskDetail, error) {
	rows, err := db.Query(ctx, `select `+taskColumns+`, t.requester, t.correlation_id as correlation, t.reply_to, t.tags, t.epoch,
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
	return t, nil
}

// readTaskAndSteps reads both in one snapshot: steps go on while they are asked for.
func readTaskAndSteps(ctx context.Context, db *database, id uuid.UUID) (t taskDetail, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, db, snapshot, func(tx pgx.Tx) error {
		if t, err = readTask(ctx, tx, id); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select s.step, s.index, s.state::text as state, s.handler, s.queue, s.attempt, s.failures, s.deliveries,
				coalesce(s.worker, '') as worker, s.state_since as since, s.due_at, s.result, s.error
			from pawl.steps s left join pawl.template_steps p on p.template_id = s.template_id and p.step = s.step
			where s.task_id = $1 order by p.position, s.step, s.index`, id)
		if err == nil {
			t.StepRows, err = pgx.CollectRows(rows, pgx.RowToStructByName[stepRow])
		}
		if err != nil {
			return fmt.Errorf("reading the steps of task %s: %w", id, err)
		}
		return nil
	})
	return t, err
}
