package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

func (a *app) templateCommand() *cobra.Command {
	return group("template", "Apply and show templates: the definitions of workflows",
		`A template is a versioned definition of a workflow, in YAML: its steps and what each needs.

A version never changes once applied: applying equal content again does nothing, other content needs a new version.`,
		a.templateApply(), a.templateList(), a.templateShow())
}

func (a *app) templateApply() *cobra.Command {
	return &cobra.Command{
		Use:   "apply FILE…",
		Short: "Apply the templates of YAML files, all of them or none",
		Example: `  pawl template apply examples/orders/shop.yaml
  pawl template apply templates/*.yaml
  cat shop.yaml | pawl template apply -`,
		Args: cobra.MinimumNArgs(1),
		RunE: run(func(ctx context.Context, files []string) error {
			templates, err := a.parseFiles(ctx, files)
			if err != nil {
				return err
			}
			return a.with(ctx, func(db *database) error {
				var known []string // before they are joined by the new ones
				if !a.json {
					known = stepQueues(ctx, db)
				}
				applied, err := db.client.ApplyTemplates(ctx, templates...)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(applied)
				}
				for _, t := range applied {
					a.say("%s", describeApplied(t, known))
				}
				return nil
			})
		}),
	}
}

// stepQueues are the names that a misspelt queue may have been meant for, as far as they may be read: they are for a hint.
func stepQueues(ctx context.Context, db *database) []string {
	rows, _ := db.Query(ctx, "select queue from pawl.queues where not engine order by queue") // an error is the rows', too
	names, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	return names
}

// nearQueue is the known queue that a name may have been meant for. The ending of every namespace's own queue makes no two of them near.
func nearQueue(queue string, known []string) string {
	stem, own := strings.CutSuffix(queue, "_queue")
	if !own {
		return nearest.Name(queue, known)
	}
	var stems []string
	for _, other := range known {
		if other, own := strings.CutSuffix(other, "_queue"); own {
			stems = append(stems, other)
		}
	}
	if near := nearest.Name(stem, stems); near != "" {
		return near + "_queue"
	}
	return ""
}

// describeApplied tells what became of a template; known are the queues that were there before.
func describeApplied(t client.AppliedTemplate, known []string) string {
	made := slices.Clone(t.QueuesCreated)
	for i, queue := range made {
		if near := nearQueue(queue, known); near != "" && near != queue {
			made[i] = fmt.Sprintf("%s (did you mean %s?)", queue, near)
		}
	}
	switch {
	case !t.Created && len(t.QueuesCreated) > 0:
		return fmt.Sprintf("%s is there already, with the same content; queues made anew: %s", t.Template, strings.Join(t.QueuesCreated, ", "))
	case !t.Created:
		return t.Template + " is there already, with the same content"
	case len(t.QueuesCreated) > 0:
		return fmt.Sprintf("%s applied; new queues: %s", t.Template, strings.Join(made, ", "))
	}
	return t.Template + " applied"
}

// parseFiles reads all files before anything is applied, and reports the problems of all of them.
func (a *app) parseFiles(ctx context.Context, files []string) ([]*workflow.Template, error) {
	var templates []*workflow.Template
	var problems []error
	for _, file := range files {
		data, err := a.read(ctx, "templates", file)
		if err != nil {
			return nil, err
		}
		parsed, err := workflow.ParseTemplates(named(file), data)
		if err != nil {
			problems = append(problems, err)
		}
		templates = append(templates, parsed...)
	}
	if len(problems) > 0 {
		return nil, &failure{code: ExitUsage, err: errors.Join(problems...), hint: "Nothing was applied."}
	}
	return templates, nil
}

type templateRow struct {
	Template   string          `json:"template"`
	TemplateID int             `json:"template_id"`
	Steps      int             `json:"steps"`
	AppliedAt  time.Time       `json:"applied_at"`
	Parked     *string         `json:"parked_reason,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

const templateColumns = `namespace || '/' || name || '@' || version as template, template_id, step_count as steps, applied_at,
	parked_reason as parked`

func (a *app) templateList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the templates, newest versions first",
		Example: "  pawl template list\n  pawl template list --json | jq -r '.[].template'",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(db *database) error {
				rows, err := db.Query(ctx, `select `+templateColumns+`, null::jsonb as definition from pawl.templates
					where not adhoc order by namespace, name, template_id desc`)
				if err != nil {
					return fmt.Errorf("listing templates: %w", err)
				}
				list, err := pgx.CollectRows(rows, pgx.RowToStructByName[templateRow])
				if err != nil {
					return fmt.Errorf("listing templates: %w", err)
				}
				if a.json {
					return a.printJSON(list)
				}
				lines := make([][]string, len(list))
				for i, t := range list {
					lines[i] = []string{t.Template, fmt.Sprint(t.Steps), when(&t.AppliedAt), text(t.Parked)}
				}
				return a.table([]string{"TEMPLATE", "STEPS", "APPLIED", "PARKED"}, lines,
					"No templates yet. Apply one with: pawl template apply FILE")
			})
		}),
	}
}

func (a *app) templateShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAMESPACE/NAME[@VERSION]",
		Short:   "Show a template as it was applied, its latest version by default",
		Example: "  pawl template show shop/fulfil_order\n  pawl template show shop/fulfil_order@1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			return a.with(ctx, func(db *database) error {
				t, err := findTemplate(ctx, db, ref)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(t)
				}
				return a.printTemplate(t)
			})
		}),
	}
}

// ref names a template; an empty version means the latest applied.
type ref struct{ namespace, name, version string }

func parseRef(s string) (ref, error) {
	parsed, err := messaging.ParseTemplateRef(s)
	if err != nil {
		return ref{}, usagef("template %q: %w", s, err)
	}
	return ref{parsed.Namespace, parsed.Name, parsed.Version}, nil
}

func findTemplate(ctx context.Context, db *database, r ref) (templateRow, error) {
	rows, err := db.Query(ctx, `select `+templateColumns+`, definition from pawl.templates
		where namespace = $1 and name = $2 and ($3 = '' and not adhoc or version = $3) order by template_id desc limit 1`,
		r.namespace, r.name, r.version)
	if err != nil {
		return templateRow{}, fmt.Errorf("reading template %s/%s: %w", r.namespace, r.name, err)
	}
	t, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[templateRow])
	if errors.Is(err, pgx.ErrNoRows) {
		name := r.namespace + "/" + r.name
		if r.version != "" {
			name += "@" + r.version
		}
		names, err := templateNames(ctx, db, r)
		if err != nil {
			return t, err
		}
		return t, notFoundf("pawl template list shows what there is", "no template %s is applied%s", name, nearest.Suggestion(name, names))
	}
	return t, err
}

// templateNames are what the user may have meant: all names, with a version if there was one.
func templateNames(ctx context.Context, db *database, r ref) ([]string, error) {
	rows, err := db.Query(ctx, `select distinct namespace || '/' || name || case when $1 then '@' || version else '' end from pawl.templates where not adhoc`,
		r.version != "")
	if err != nil {
		return nil, fmt.Errorf("reading the names of templates: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reading the names of templates: %w", err)
	}
	return names, nil
}

func (a *app) printTemplate(t templateRow) error {
	var d struct {
		Description string
		OnFailure   string `json:"on_failure"`
		Steps       []struct {
			Name, Handler, Queue string
			Needs                []json.RawMessage
			Retry                struct {
				MaxAttempts int `json:"max_attempts"`
			}
		}
	}
	if err := json.Unmarshal(t.Definition, &d); err != nil {
		return fmt.Errorf("reading the definition of %s: %w", t.Template, err)
	}
	a.say("%s  (applied %s)", t.Template, when(&t.AppliedAt))
	if d.Description != "" {
		a.say("%s", d.Description)
	}
	if t.Parked != nil {
		a.say("PARKED: %s", *t.Parked)
	}
	a.say("")
	lines := make([][]string, len(d.Steps))
	for i, s := range d.Steps {
		needs := make([]string, len(s.Needs))
		for j, raw := range s.Needs {
			var no int
			if json.Unmarshal(raw, &no) != nil {
				var need struct{ No int }
				if err := json.Unmarshal(raw, &need); err != nil {
					return fmt.Errorf("reading the needs of step %s: %w", s.Name, err)
				}
				no = need.No
			}
			needs[j] = d.Steps[no].Name
		}
		lines[i] = []string{s.Name, s.Handler, s.Queue, fmt.Sprint(s.Retry.MaxAttempts), strings.Join(needs, ", ")}
	}
	return a.table([]string{"STEP", "HANDLER", "QUEUE", "ATTEMPTS", "NEEDS"}, lines, "no steps")
}
