package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/conformance"
)

// conformanceConfig of `pawl conformance`.
type conformanceConfig struct {
	command  string
	level    int
	name     string
	workers  []string
	only     []string
	patience time.Duration
	markdown bool
	verbose  bool
	named    bool // --name or --level was given
}

func (a *app) conformanceCommand() *cobra.Command {
	var config conformanceConfig
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Put a worker of any language through its paces",
		Long: `Starts a private database and an orchestrator, runs the worker on them, and checks what it does with messages of every
shape, failures of each kind, crashes, lost leases, cancels, outages and SIGTERM. docs/conformance.md says what handlers
the worker has to offer, and what the environment tells it.

Ends with exit code 1 when a check fails. What a worker of its level cannot pass is said and does not count.`,
		Example: `  pawl conformance --worker-command 'exec python3 my_worker.py'
  pawl conformance --worker-command './worker.sh' --level 1 --json
  pawl conformance --worker 'Go:2=bin/goworker' --worker 'bash:1=./worker.sh' --markdown`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	c.RunE = run(func(ctx context.Context, _ []string) error {
		config.named = flags.Changed("name") || flags.Changed("level")
		return a.conformance(ctx, config)
	})
	flags.StringVar(&config.command, "worker-command", "", "command that runs the worker; a shell reads it")
	flags.IntVar(&config.level, "level", int(conformance.LevelSQL), "of the worker: 1 PGMQ only, 2 SQL, 3 HTTP")
	flags.StringVar(&config.name, "name", "worker", "of the worker, in the table")
	flags.StringArrayVar(&config.workers, "worker", nil, "NAME:LEVEL=COMMAND, instead of the three flags above; may be repeated")
	flags.StringArrayVar(&config.only, "only", nil, "only the check of this name; may be repeated")
	durationVar(flags, &config.patience, "patience", "how long a check waits for what must come (default 1m)")
	flags.BoolVar(&config.markdown, "markdown", false, "print one table of all workers, for documents")
	flags.BoolVarP(&config.verbose, "verbose", "v", false, "show what the workers write")
	return a.ownDatabase(c)
}

func (c conformanceConfig) all() ([]conformance.Config, error) {
	if (c.command == "") == (len(c.workers) == 0) {
		return nil, usagef("give --worker-command, or one --worker NAME:LEVEL=COMMAND or several")
	}
	if c.named && c.command == "" {
		return nil, usagef("--name and --level go with --worker-command; write them into --worker, as NAME:LEVEL=COMMAND")
	}
	if c.command != "" {
		return []conformance.Config{{Name: c.name, Level: conformance.Level(c.level), Command: c.command}}, nil
	}
	var all []conformance.Config
	for _, text := range c.workers {
		who, command, ok := strings.Cut(text, "=")
		name, number, leveled := strings.Cut(who, ":")
		level, err := strconv.Atoi(number)
		if !ok || !leveled || err != nil || name == "" || command == "" {
			return nil, usagef("--worker %q: write it as NAME:LEVEL=COMMAND", text)
		}
		all = append(all, conformance.Config{Name: name, Level: conformance.Level(level), Command: command})
	}
	return all, nil
}

func (a *app) conformance(ctx context.Context, config conformanceConfig) error {
	all, err := config.all()
	if err != nil {
		return err
	}
	var reports []conformance.Report
	failed := 0
	for _, one := range all {
		one.Patience, one.Only = config.patience, config.only
		if config.verbose {
			one.Output = a.Err
		}
		if !a.json {
			fmt.Fprintf(a.Err, "%s, level %d\n", one.Name, one.Level)
			one.Progress = func(r conformance.Result) { fmt.Fprintf(a.Err, "  %s\n", r) }
		}
		report, err := conformance.Run(ctx, one)
		if err != nil {
			return err
		}
		failed += report.Failed()
		reports = append(reports, report)
	}
	switch {
	case a.json:
		err = a.printJSON(reports)
	case config.markdown:
		conformance.Markdown(a.Out, reports)
	default:
		for _, report := range reports {
			fmt.Fprintln(a.Out)
			report.Print(a.Out)
		}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d checks failed", failed)
	}
	return err
}
