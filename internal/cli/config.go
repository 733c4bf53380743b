package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Apply, show and compare the settings kept in the database",
		`Limits of queues, retention and how the engine runs are kept in the database, so that all instances agree; they pick
up a change within a second. A file, usually pawl.toml, says what they should be:

  [queues.shop_pricing]
  rate_limit = "100/sec"
  burst = 20

  [templates."shop/fulfil_order"]
  retention = "90d"`,
		a.configApply(), a.configShow(), a.configDiff())
}

func (a *app) configApply() *cobra.Command {
	return a.operatorFlags(&cobra.Command{
		Use:   "apply FILE",
		Short: "Put a file's settings into the database, all of them or none",
		Example: `  pawl config apply pawl.toml --reason "provider's new quota"
  cat pawl.toml | pawl config apply - --reason "deploy 42"`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			by, err := a.who()
			if err != nil { // and that matters only if something changes
				return a.configure(ctx, args[0], comparing("apply"), func(changes []settingChange) error {
					if len(changes) > 0 {
						return err
					}
					return errCompared
				})
			}
			return a.configure(ctx, args[0], by, func([]settingChange) error { return nil })
		}),
	})
}

func (a *app) configDiff() *cobra.Command {
	return &cobra.Command{
		Use:     "diff FILE",
		Short:   "Show what applying a file would change; nothing is changed",
		Example: "  pawl config diff pawl.toml",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.configure(ctx, args[0], comparing("diff"), func([]settingChange) error { return errCompared })
		}),
	}
}

func (a *app) configShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the settings in the database, as a file that apply takes",
		Example: "  pawl config show > pawl.toml\n  pawl config show --json | jq .queues",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(db *database) error {
				settings, err := readSettings(ctx, db)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(settings)
				}
				encoder := toml.NewEncoder(a.Out)
				encoder.Indent = ""
				if err := encoder.Encode(settings); err != nil {
					return fmt.Errorf("writing the settings: %w", err)
				}
				return nil
			})
		}),
	}
}

// settings of a database, by section and key, as in a file. What is not set is not there.
type settings map[string]map[string]any

const settingsQuery = `
	select jsonb_build_object(
		'engine', (select jsonb_build_object('staged', staged, 'direct', direct, 'announce', announce,
			'max_steps_per_transaction', max_steps_per_transaction) from pawl.engine_settings),
		'retention', (select jsonb_build_object('dead_letters', pawl.show_duration(dead_letter_retention),
			'absorbed', pawl.show_duration(absorbed_retention), 'audit', pawl.show_duration(audit_retention),
			'operations', pawl.show_duration(operation_retention)) from pawl.engine_settings),
		'queues', coalesce((select jsonb_object_agg(q.queue, jsonb_strip_nulls(pawl.show_queue_settings(q))) from pawl.queues q
			where not q.engine), '{}'),
		'templates', coalesce((select jsonb_object_agg(namespace || '/' || name, jsonb_strip_nulls(jsonb_build_object(
			'retention', pawl.show_duration(retention), 'stuck_after', (select jsonb_object_agg(state,
				pawl.show_duration(ms::float8 * interval '1 ms')) from jsonb_each_text(stuck_after) e(state, ms))))) from pawl.template_settings), '{}'))`

func readSettings(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (settings, error) {
	var text []byte
	if err := db.QueryRow(ctx, settingsQuery).Scan(&text); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	var s settings
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	for _, section := range s {
		integers(section)
	}
	return s, nil
}

// integers makes whole numbers of JSON's, which TOML tells apart from others.
func integers(fields map[string]any) {
	for name, value := range fields {
		switch v := value.(type) {
		case json.Number:
			if n, err := v.Int64(); err == nil {
				fields[name] = n
			}
		case map[string]any:
			integers(v)
		}
	}
}

// flat is every setting by its dotted key.
func (s settings) flat() map[string]string {
	all := map[string]string{}
	var add func(prefix string, fields map[string]any)
	add = func(prefix string, fields map[string]any) {
		for name, value := range fields {
			if inner, ok := value.(map[string]any); ok {
				add(prefix+"."+name, inner)
				continue
			}
			all[prefix+"."+name] = plain(value)
		}
	}
	for name, fields := range s {
		add(name, fields)
	}
	return all
}

// settingChange is one setting that a file changes.
type settingChange struct {
	Key  string `json:"key"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

func compare(before, after settings) []settingChange {
	was, is := before.flat(), after.flat()
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	changes := []settingChange{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was[key] != is[key] {
			changes = append(changes, settingChange{Key: key, From: was[key], To: is[key]})
		}
	}
	return changes
}

// comparing is who applies a file for a comparison; it is rolled back.
func comparing(command string) client.By {
	return client.By{Actor: "pawl config " + command, Reason: "comparing"}
}

// configure applies the file in one transaction, which commits unless judge has an error of what changes; errCompared is none.
func (a *app) configure(ctx context.Context, path string, by client.By, judge func([]settingChange) error) error {
	file, err := a.parseConfig(ctx, path)
	if err != nil {
		return err
	}
	return a.with(ctx, func(db *database) error {
		var changes []settingChange
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			before, err := readSettings(ctx, tx)
			if err != nil {
				return err
			}
			if err := applyConfig(ctx, tx, file, by); err != nil {
				return err
			}
			after, err := readSettings(ctx, tx)
			if err != nil {
				return err
			}
			changes = compare(before, after)
			return judge(changes)
		})
		if err != nil && !errors.Is(err, errCompared) {
			return err
		}
		return a.printChanges(changes, err == nil)
	})
}

var errCompared = errors.New("only compared")

func (a *app) parseConfig(ctx context.Context, path string) (*config.File, error) {
	data, err := a.read(ctx, "the settings", path)
	if err != nil {
		return nil, err
	}
	file, err := config.Parse(named(path), data)
	if err != nil {
		return nil, &failure{code: ExitUsage, err: err, hint: "Nothing was changed."}
	}
	return file, nil
}

func applyConfig(ctx context.Context, tx pgx.Tx, file *config.File, by client.By) error {
	if engine := file.Engine(); len(engine) > 0 {
		if err := setting(ctx, tx, "select pawl.configure_engine($1::text::jsonb, $2, $3)", engine, by.Actor, by.Reason); err != nil {
			return fmt.Errorf("configuring the engine: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Queues)) {
		if err := setting(ctx, tx, "select pawl.configure_queue($4, $1::text::jsonb, $2, $3)", file.Queues[name].Settings(), by.Actor, by.Reason, name); err != nil {
			return fmt.Errorf("configuring queue %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Templates)) {
		namespace, template, _ := strings.Cut(name, "/")
		if err := setting(ctx, tx, "select pawl.configure_template($4, $5, $1::text::jsonb, $2, $3)", file.Templates[name].Settings(),
			by.Actor, by.Reason, namespace, template); err != nil {
			return fmt.Errorf("configuring template %s: %w", name, err)
		}
	}
	return nil
}

// setting calls a function with settings first, as text: without a prepared statement a map has no encoding.
func setting(ctx context.Context, tx pgx.Tx, call string, settings map[string]any, arguments ...any) error {
	text, err := json.Marshal(settings)
	if err == nil {
		_, err = tx.Exec(ctx, call, append([]any{string(text)}, arguments...)...)
	}
	return err
}

func (a *app) printChanges(changes []settingChange, applied bool) error {
	if a.json {
		return a.printJSON(changes)
	}
	if len(changes) == 0 {
		a.say("The database has these settings already.")
		return nil
	}
	for _, c := range changes {
		a.say("%s: %s → %s", c.Key, text(&c.From), text(&c.To))
	}
	if applied {
		a.say("applied")
	}
	return nil
}
