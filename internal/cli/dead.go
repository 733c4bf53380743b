package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
)

func (a *app) deadCommand() *cobra.Command {
	return group("dead", "List, show, redrive and drop dead letters",
		`A dead letter is a message that could not be processed: malformed, unknown, or failing each time it was tried alone.
It is kept with its reason until somebody redrives it (sends it again) or drops it.`,
		a.deadList(), a.deadShow(), a.deadRedrive(), a.deadDrop())
}

type deadLetter struct {
	DeadLetterID int64           `json:"dead_letter_id"`
	Queue        string          `json:"queue"`
	Status       string          `json:"status"`
	Reason       string          `json:"reason"`
	TaskID       *string         `json:"task_id,omitempty"`
	Step         *string         `json:"step,omitempty"`
	ReadCount    *int            `json:"read_count,omitempty"`
	DeadAt       time.Time       `json:"dead_at"`
	EndedAt      *time.Time      `json:"ended_at,omitempty"`
	EndedBy      *string         `json:"ended_by,omitempty"`
	Message      json.RawMessage `json:"message,omitempty"`
	Headers      json.RawMessage `json:"headers,omitempty"`
}

const deadColumns = `dead_letter_id, queue, status, reason, task_id::text as task_id, step, read_count, dead_at, ended_at, ended_by`

func (a *app) deadList() *cobra.Command {
	var queue, status string
	var limit int
	c := &cobra.Command{
		Use:     "list",
		Short:   "List dead letters, the latest first",
		Example: "  pawl dead list\n  pawl dead list --queue orchestration_task_requests --status all",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			switch status {
			case "open", "redriven", "dropped", "all":
			default:
				return usagef("--status is open, redriven, dropped or all, not %q", status)
			}
			return a.with(ctx, func(db *database) error {
				rows, err := db.Query(ctx, `select `+deadColumns+`, null::jsonb as message, null::jsonb as headers from pawl.dead_letters
					where ($1 = '' or queue = $1) and ($2 = 'all' or status = $2) order by dead_letter_id desc limit $3`, queue, status, limit)
				if err != nil {
					return fmt.Errorf("listing dead letters: %w", err)
				}
				list, err := pgx.CollectRows(rows, pgx.RowToStructByName[deadLetter])
				if err != nil {
					return fmt.Errorf("listing dead letters: %w", err)
				}
				if a.json {
					return a.printJSON(list)
				}
				lines := make([][]string, len(list))
				for i, d := range list {
					lines[i] = []string{fmt.Sprint(d.DeadLetterID), d.Queue, d.Status, when(&d.DeadAt), text(d.TaskID), clip(d.Reason, 70)}
				}
				return a.table([]string{"ID", "QUEUE", "STATUS", "DEAD SINCE", "TASK", "REASON"}, lines, "No dead letters.")
			})
		}),
	}
	c.Flags().StringVar(&queue, "queue", "", "only of this queue")
	c.Flags().StringVar(&status, "status", "open", "open, redriven, dropped or all")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return c
}

func (a *app) deadShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a dead letter with its message",
		Example: "  pawl dead show 12",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("dead letter %q: its id is a number, see pawl dead list", args[0])
			}
			return a.with(ctx, func(db *database) error {
				rows, err := db.Query(ctx, `select `+deadColumns+`, message, headers from pawl.dead_letters where dead_letter_id = $1`, id)
				if err != nil {
					return fmt.Errorf("reading dead letter %d: %w", id, err)
				}
				d, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[deadLetter])
				if errors.Is(err, pgx.ErrNoRows) {
					return notFoundf("pawl dead list --status all shows what there is", "there is no dead letter %d", id)
				} else if err != nil {
					return fmt.Errorf("reading dead letter %d: %w", id, err)
				}
				if a.json {
					return a.printJSON(d)
				}
				a.printDeadLetter(d)
				return nil
			})
		}),
	}
}

func (a *app) printDeadLetter(d deadLetter) {
	a.say("dead letter  %d, %s", d.DeadLetterID, d.Status)
	a.say("queue        %s", d.Queue)
	a.say("reason       %s", d.Reason)
	a.say("dead since   %s", when(&d.DeadAt))
	if d.ReadCount != nil {
		a.say("reads        %d", *d.ReadCount)
	}
	if d.TaskID != nil {
		a.say("task         %s %s", *d.TaskID, text(d.Step))
	}
	if d.EndedAt != nil {
		a.say("ended        %s by %s", when(d.EndedAt), text(d.EndedBy))
	}
	a.say("message      %s", indented(d.Message, "             "))
	if len(d.Headers) > 0 {
		a.say("headers      %s", indented(d.Headers, "             "))
	}
}

// deadFilter is which dead letters a command moves.
type deadFilter struct {
	queue, reason string
	olderThan     time.Duration
	limit         int
	all           bool
}

func (f *deadFilter) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.queue, "queue", "", "those of this queue")
	c.Flags().StringVar(&f.reason, "reason-like", "", "those whose reason matches, as 'unknown template%'")
	durationVar(c.Flags(), &f.olderThan, "older-than", "those dead for longer, as 24h")
	c.Flags().BoolVar(&f.all, "all", false, "every open one")
	c.Flags().IntVar(&f.limit, "limit", 1000, "at most so many")
}

// which are the dead letters with these ids, or all, that match.
func (f *deadFilter) which(ids []string) (client.DeadLetters, error) {
	which := client.DeadLetters{Filter: map[string]any{}, Quantity: f.limit}
	if len(ids) > 0 {
		numbers := make([]int64, len(ids))
		for i, id := range ids {
			number, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return which, usagef("dead letter %q: its id is a number, see pawl dead list", id)
			}
			numbers[i] = number
		}
		which.Filter["ids"] = numbers
	}
	if f.queue != "" {
		which.Filter["queue"] = f.queue
	}
	if f.reason != "" {
		which.Filter["reason"] = f.reason
	}
	if f.olderThan > 0 {
		which.Filter["before"] = time.Now().Add(-f.olderThan).UTC().Format(time.RFC3339Nano)
	}
	switch {
	case len(which.Filter) == 0 && !f.all:
		return which, usagef("say which dead letters: ids, --queue, --reason-like, --older-than, or --all")
	case f.limit < 1:
		return which, usagef("--limit must be at least 1")
	}
	return which, nil
}

// leftAlone follows a refusal of one of several ids.
const leftAlone = "Nothing was changed. pawl dead list shows the open ones"

// checkOpen refuses ids that are no open dead letter's.
func checkOpen(ctx context.Context, db *database, ids any) error {
	rows, err := db.Query(ctx, `select i, d.status from unnest($1::bigint[]) with ordinality w(i, place)
		left join pawl.dead_letters d on d.dead_letter_id = i where d.status is distinct from 'open' order by place`, ids)
	if err != nil {
		return fmt.Errorf("looking for the dead letters: %w", err)
	}
	var id int64
	var status *string
	_, err = pgx.ForEachRow(rows, []any{&id, &status}, func() error {
		if status == nil {
			return notFoundf(leftAlone, "there is no dead letter %d", id)
		}
		return &failure{code: ExitRefused, err: fmt.Errorf("dead letter %d is %s already", id, *status), hint: leftAlone}
	})
	return err
}

// changeDead gives a command that moves dead letters, and prints how many it moved.
func (a *app) changeDead(ctx context.Context, done string, which client.DeadLetters, command func(*client.Client, client.By) (client.Outcome, error)) error {
	outcome, err := a.operate(ctx, func(db *database, by client.By) (outcome client.Outcome, err error) {
		if ids, ok := which.Filter["ids"]; ok {
			if err := checkOpen(ctx, db, ids); err != nil {
				return outcome, err
			}
		}
		return command(db.client, by)
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(outcome.Details)
	}
	var moved struct {
		Redriven, Dropped, Absorbed int
		Left                        *int
	}
	if err := json.Unmarshal(outcome.Details, &moved); err != nil {
		return fmt.Errorf("reading how many dead letters were %s: %w", done, err)
	}
	line := fmt.Sprintf("dead letters %s: %d", done, moved.Redriven+moved.Dropped)
	if moved.Absorbed > 0 {
		line += fmt.Sprintf("; %d were no longer needed", moved.Absorbed)
	}
	if moved.Left != nil && *moved.Left > 0 {
		line += fmt.Sprintf("; %d stay, their queues are gone", *moved.Left)
	}
	a.say("%s", line)
	return nil
}

func (a *app) deadRedrive() *cobra.Command {
	var f deadFilter
	var spread time.Duration
	c := a.operatorFlags(&cobra.Command{
		Use:   "redrive [ID…]",
		Short: "Send dead letters again to the queues they came from",
		Example: `  pawl dead redrive 12 13 --reason "template is applied now"
  pawl dead redrive --queue orchestration_task_requests --spread 10m --reason "deploy rolled back"`,
		RunE: run(func(ctx context.Context, ids []string) error {
			which, err := f.which(ids)
			if err != nil {
				return err
			}
			which.Spread = spread
			return a.changeDead(ctx, "redriven", which, func(c *client.Client, by client.By) (client.Outcome, error) {
				return c.RedriveDeadLetters(ctx, which, by)
			})
		}),
	})
	f.flags(c)
	durationVar(c.Flags(), &spread, "spread", "spread them over this time, as 10m")
	return c
}

func (a *app) deadDrop() *cobra.Command {
	var f deadFilter
	c := a.operatorFlags(&cobra.Command{
		Use:     "drop [ID…]",
		Short:   "Mark dead letters as dropped; they stay readable until their retention ends",
		Example: `  pawl dead drop --queue orchestration_task_requests --older-than 7d --reason "test traffic"`,
		RunE: run(func(ctx context.Context, ids []string) error {
			which, err := f.which(ids)
			if err != nil {
				return err
			}
			return a.changeDead(ctx, "dropped", which, func(c *client.Client, by client.By) (client.Outcome, error) {
				return c.DropDeadLetters(ctx, which, by)
			})
		}),
	})
	f.flags(c)
	return c
}
