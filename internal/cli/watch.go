package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/live"
)

// watcher follows some tasks, or the latest ones.
type watcher struct {
	app      *app
	ids      []uuid.UUID
	limit    int
	once     bool
	interval time.Duration
	seen     map[string]string  // by task: what was last printed of it, for lines
	final    map[string]taskRow // named tasks that were seen to have ended: retention may take them while others go on
}

func (a *app) watchCommand() *cobra.Command {
	w := &watcher{app: a, interval: time.Second, seen: map[string]string{}, final: map[string]taskRow{}}
	c := &cobra.Command{
		Use:   "watch [TASK…]",
		Short: "Watch tasks and queues live: bars on a terminal, lines in a pipe",
		Long: `Watches the latest tasks and all queues until Ctrl-C, or the tasks that are named until they have ended
(exit code 4 if one of them did not complete, 3 if one was deleted before its end was seen). On a terminal the view redraws itself; in a pipe each change is a line,
with --json an object in a line. The latest are those with the last ids, as in pawl task list.`,
		Example: `  pawl watch
  pawl watch 019a3f0c
  pawl watch --json | jq -r 'select(.status == "failed") | .task_id'`,
		RunE: run(func(ctx context.Context, args []string) error {
			if w.limit != 0 && len(args) > 0 {
				return usagef("--limit is how many of the latest tasks: leave it out, or the tasks that are named")
			}
			return a.with(ctx, func(db *database) error {
				for _, typed := range args {
					id, err := findTask(ctx, db, typed)
					if err != nil {
						return err
					}
					w.ids = append(w.ids, id)
				}
				return w.follow(ctx, db)
			})
		}),
	}
	c.Flags().IntVar(&w.limit, "limit", 0, "how many of the latest tasks (default 12)")
	c.Flags().BoolVar(&w.once, "once", false, "look once and end")
	durationVar(c.Flags(), &w.interval, "interval", "time between two looks")
	return c
}

func (w *watcher) follow(ctx context.Context, db *database) error {
	screen := live.New(w.app.Out)
	if w.app.json {
		screen = nil
	}
	for !live.Unread(w.app.Out) { // as of `| head`, whose end would show only with the next change
		tasks, err := w.read(ctx, db)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how a watch ends
		} else if err != nil {
			return err
		}
		if screen != nil && screen.Terminal() {
			queues, err := readQueues(ctx, db)
			if err != nil && ctx.Err() == nil {
				return err
			}
			screen.Draw(w.frame(tasks, queues, screen.Width(), screen.Lines()))
		} else if err := w.lines(tasks); err != nil {
			return err
		}
		if ended, err := w.ended(tasks); ended || w.once {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(w.interval, 50*time.Millisecond)):
		}
	}
	return nil
}

func (w *watcher) read(ctx context.Context, db *database) ([]taskRow, error) {
	if len(w.ids) == 0 {
		return readTasks(ctx, db, "order by t.task_id desc limit $1", cmp.Or(w.limit, 12))
	}
	tasks, err := readTasks(ctx, db, "where t.task_id = any ($1::text[]::uuid[]) order by t.requested_at, t.task_id", w.named())
	if err != nil {
		return nil, err
	}
	return w.complete(tasks)
}

// named are the ids as text: without a prepared statement a list of UUIDs has no encoding.
func (w *watcher) named() []string {
	ids := make([]string, len(w.ids))
	for i, id := range w.ids {
		ids[i] = id.String()
	}
	return ids
}

// complete adds named tasks that are gone and were seen to have ended. How one ended that was not seen, nobody knows.
func (w *watcher) complete(tasks []taskRow) ([]taskRow, error) {
	there := map[string]bool{}
	for _, t := range tasks {
		there[t.TaskID] = true
		if t.final() {
			w.final[t.TaskID] = t
		}
	}
	for _, id := range w.ids {
		if there[id.String()] {
			continue
		}
		last, ended := w.final[id.String()]
		if !ended {
			return nil, notFoundf("its retention is over, so that its end is not known any more", "task %s is gone", id)
		}
		there[id.String()] = true
		tasks = append(tasks, last)
	}
	return tasks, nil
}

// ended says whether all named tasks have ended, and whether one of them failed.
func (w *watcher) ended(tasks []taskRow) (bool, error) {
	if len(w.ids) == 0 {
		return false, nil
	}
	failed := 0
	for _, t := range tasks {
		if !t.final() {
			return false, nil
		}
		if t.Status != "completed" {
			failed++
		}
	}
	if failed > 0 {
		return true, &failure{code: ExitTaskFailed, err: fmt.Errorf("%d of %d tasks did not complete", failed, len(tasks)),
			hint: "pawl task show TASK says what failed"}
	}
	return true, nil
}

// lines prints each task whose state or progress changed.
func (w *watcher) lines(tasks []taskRow) error {
	for i := len(tasks) - 1; i >= 0; i-- {
		t := tasks[i]
		now := fmt.Sprintf("%s %d", t.State, t.Open)
		if w.seen[t.TaskID] == now {
			continue
		}
		w.seen[t.TaskID] = now
		if w.app.json {
			encoded, err := json.Marshal(t)
			if err != nil {
				return fmt.Errorf("printing task %s: %w", t.TaskID, err)
			}
			fmt.Fprintf(w.app.Out, "%s\n", encoded)
			continue
		}
		w.app.say("%s  %s  %s  %s  %d/%d", time.Now().Format("15:04:05"), t.TaskID, t.Template, t.State, t.Steps-t.Open, t.Steps)
	}
	return nil
}

// frame is the view of a terminal, of height lines where two are enough: tasks that find no room are counted.
func (w *watcher) frame(tasks []taskRow, queues []queueRow, width, height int) []string {
	var lines []string
	shown := tasks
	if room := height - 2; len(tasks) > room { // with the queues and the line above them
		shown = tasks[:max(room-1, 1)]
	}
	for _, t := range shown {
		lines = append(lines, fmt.Sprintf("%s  %-28s %s %3d/%-3d %-22s %s", t.TaskID[:8]+"…"+t.TaskID[32:], clip(t.Template, 28),
			live.Bar(t.Steps-t.Open, t.Steps, 20), t.Steps-t.Open, t.Steps, t.State, t.took()))
	}
	if rest := len(tasks) - len(shown); rest > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", rest))
	}
	if len(tasks) == 0 {
		lines = append(lines, "No tasks yet. Submit one with: pawl submit NAMESPACE/NAME --input '{…}'")
	}
	var parts []string
	for _, q := range queues {
		if q.Length+q.Held > 0 || !q.Engine {
			part := fmt.Sprintf("%s %d", q.Queue, q.Length)
			if q.Held > 0 {
				part += fmt.Sprintf("+%d held", q.Held)
			}
			parts = append(parts, part)
		}
	}
	lines = append(lines, "", clip("queues  "+strings.Join(parts, " · "), width-1))
	return lines
}
