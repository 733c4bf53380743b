package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/internal/program"
)

// Streams of one run of pawl.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is what the commands of one run share.
type app struct {
	Streams
	databaseURL string
	json        bool
	operator    client.By
}

// Main runs pawl with the process's arguments and streams, until Ctrl-C or SIGTERM, and returns its exit code. A second one
// ends the process at once.
func Main() int {
	ctx, stop := program.UntilSignal()
	defer stop()
	return Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// Run runs pawl with the arguments and returns its exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	a := &app{Streams: streams}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	var ran *ranError
	if !errors.As(err, &ran) { // cobra refused the command line before anything ran
		printFailure(streams.Err, misused(root, args, err), a.json || wantsJSON(args))
		return ExitUsage
	}
	f := classify(ran.err)
	printFailure(streams.Err, f, a.json)
	return f.code
}

// wantsJSON says whether --json stands among arguments that were not all read.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

// misused tells how the command that was meant is used.
func misused(root *cobra.Command, args []string, err error) *failure {
	hint := "pawl --help shows the commands, pawl COMMAND --help their flags"
	var unread *strconv.NumError
	if errors.As(err, &unread) {
		wanted := "a whole number"
		if unread.Func == "ParseBool" {
			wanted = "true or false"
		}
		err = fmt.Errorf("%swrite %s", strings.TrimSuffix(err.Error(), unread.Error()), wanted)
	}
	if c, _, findErr := root.Find(args); findErr == nil && c != root && !c.HasSubCommands() {
		hint = "usage: " + c.UseLine() + "\n" + hint
	} else if findErr == nil && c.HasSubCommands() && c != root {
		if words := c.Flags().Args(); len(words) > 0 {
			err = fmt.Errorf("%w%s", err, nearest.Suggestion(words[0], names(c)))
		}
		hint = c.CommandPath() + " --help shows its commands"
	}
	return &failure{code: ExitUsage, err: err, hint: hint}
}

func names(c *cobra.Command) []string {
	var list []string
	for _, sub := range c.Commands() {
		list = append(list, sub.Name())
	}
	return list
}

// ranError is an error of a command's own run.
type ranError struct{ err error }

func (e *ranError) Error() string { return e.err.Error() }
func (e *ranError) Unwrap() error { return e.err }

// run makes a command's RunE out of its work.
func run(work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := emptyFlag(cmd.Flags())
		if err == nil {
			err = work(cmd.Context(), args)
		}
		if err != nil {
			return &ranError{err: err}
		}
		return nil
	}
}

// emptyFlag refuses a text that was given and is empty, most likely by a variable that is not set: it would mean what the
// flag's absence means, as every task or another database. A reason that is missing has its own words.
func emptyFlag(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == "" || f.Value.Type() == "stringSlice" && f.Value.String() == "[]"
		if empty && f.Name != "reason" && err == nil {
			err = usagef("--%s is empty: write a string that is not empty, or leave it out", f.Name)
		}
	})
	return err
}

// group makes a command that only holds others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	c.AddCommand(commands...)
	return c
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Durable workflows on one Postgres with PGMQ",
		Long: `Pawl runs workflows on one Postgres with PGMQ: a row in, a workflow out.

Try it on this machine:
  pawl dev                                        a private Postgres, an orchestrator and a demo worker
  pawl submit shop/fulfil_order --input '{...}' --wait    in a second terminal

On your database:
  export PAWL_DATABASE_URL=postgres://user@host/db
  pawl migrate                                    tables and functions, in schema pawl
  pawl template apply shop.yaml
  pawl submit shop/fulfil_order --input-file order.json --key S-1001 --wait

` + exitHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.databaseURL, "database-url", "", "Postgres to work on (default $PAWL_DATABASE_URL, else a running pawl dev)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		a.devCommand(), a.demoCommand(), a.demoProcessCommand(),
		a.migrateCommand(), a.templateCommand(),
		a.submitCommand(), a.enqueueCommand(),
		a.taskCommand(), a.stepCommand(), a.watchCommand(), a.stuckCommand(),
		a.queueCommand(), a.deadCommand(), a.configCommand(),
		a.doctorCommand(), a.conformanceCommand(), a.versionCommand(),
	)
	return root
}

// Commands is the tree of pawl's commands, for tests of the documents.
func Commands() *cobra.Command { return (&app{}).root() }
