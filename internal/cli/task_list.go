package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/workflow"
)

// taskFilter is what `task list` was asked for; empty fields ask for everything.
type taskFilter struct {
	template, key string
	states, tags  []string
	since         time.Duration
	limit         int
}

func (a *app) taskList() *cobra.Command {
	var f taskFilter
	c := &cobra.Command{
		Use:   "list",
		Short: "List tasks, the latest first",
		Long: `Lists tasks in the order of their ids, from the last. The ids that Pawl and its clients make are in the order of time; one that
a request of your own brings, as a random UUID, stands anywhere: find such tasks with --since, --key or --tag.`,
		Example: `  pawl task list
  pawl task list --state error,timed_out --since 24h
  pawl task list --template shop/fulfil_order --key S-1001
  pawl task list --state open --json | jq -r '.[].task_id'`,
		Args: cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			where, args, err := f.where()
			if err != nil {
				return err
			}
			return a.with(ctx, func(db *database) error {
				list, err := readTasks(ctx, db, where, args...)
				if err != nil {
					return err
				}
				if len(list) > f.limit {
					list = list[:f.limit]
					fmt.Fprintf(a.Err, "%d shown, there are more: --limit %d for twice as many\n", f.limit, 2*f.limit)
				}
				return a.printTasks(list)
			})
		}),
	}
	flags := c.Flags()
	flags.StringVar(&f.template, "template", "", "only tasks of NAMESPACE/NAME[@VERSION]")
	flags.StringSliceVar(&f.states, "state", nil, "only tasks in these states; open and final are accepted, too")
	flags.StringVar(&f.key, "key", "", "only tasks with this key")
	flags.StringArrayVar(&f.tags, "tag", nil, "only tasks with this tag, NAME=VALUE")
	durationVar(flags, &f.since, "since", "only tasks requested within this time, as 15m, 24h or 7d")
	flags.IntVar(&f.limit, "limit", 50, "at most so many")
	return c
}

func (f taskFilter) where() (string, []any, error) {
	var conditions []string
	var args []any
	add := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if f.template != "" {
		r, err := parseRef(f.template)
		if err != nil {
			return "", nil, err
		}
		add("t.namespace = $%d", r.namespace)
		add("t.template = $%d", r.name)
		if r.version != "" {
			add("t.version = $%d", r.version)
		}
	}
	if len(f.states) > 0 {
		states, err := taskStates(f.states)
		if err != nil {
			return "", nil, err
		}
		add("t.state::text = any ($%d::text[])", states)
	}
	if f.key != "" {
		add("t.key = $%d", f.key)
	}
	if len(f.tags) > 0 {
		tags, err := parseTags(f.tags)
		if err != nil {
			return "", nil, err
		}
		encoded, _ := json.Marshal(tags) // plain strings
		add("t.tags @> $%d::jsonb", string(encoded))
	}
	if f.since > 0 {
		add("t.requested_at > pawl.now() - make_interval(secs => $%d)", f.since.Seconds())
	}
	if f.limit < 1 {
		return "", nil, usagef("--limit must be at least 1")
	}
	where := ""
	if len(conditions) > 0 {
		where = "where " + strings.Join(conditions, " and ")
	}
	args = append(args, f.limit+1) // one more tells that there are more
	return fmt.Sprintf("%s order by t.task_id desc limit $%d", where, len(args)), args, nil
}

// taskStates spells out open and final.
func taskStates(names []string) (states []string, err error) {
	for _, name := range names {
		if name == "open" || name == "final" {
			for _, s := range workflow.TaskStates() {
				if s.IsFinal() == (name == "final") {
					states = append(states, string(s))
				}
			}
			continue
		}
		state, err := workflow.ParseTaskState(name)
		if err != nil {
			return nil, usagef("%w; open and final are accepted, too", err)
		}
		states = append(states, string(state))
	}
	return states, nil
}

func parseTags(pairs []string) (map[string]string, error) {
	tags := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usagef("tag %q: a tag is written NAME=VALUE", pair)
		}
		if _, twice := tags[name]; twice {
			return nil, usagef("tag %q is given twice: a task has one value of it", name)
		}
		tags[name] = value
	}
	return tags, nil
}

func (a *app) printTasks(list []taskRow) error {
	if a.json {
		return a.printJSON(list)
	}
	lines := make([][]string, len(list))
	for i, t := range list {
		lines[i] = []string{t.TaskID, t.Template, t.State, fmt.Sprintf("%d/%d", t.Steps-t.Open, t.Steps), clip(text(t.Key), 24), when(&t.RequestedAt), t.took()}
	}
	return a.table([]string{"TASK", "TEMPLATE", "STATE", "STEPS", "KEY", "REQUESTED", "TOOK"}, lines, "No such tasks.")
}
