package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// Program is a binary that works until it is told to stop.
type Program struct {
	// Name as errors begin with it.
	Name string
	// Usage is what --help says before the flags.
	Usage string
	// Settings points to a struct of package config; it is filled before Work.
	Settings any
	// LogLevel points to the field of Settings that says it.
	LogLevel *string
	// Out is where --help and --version go. Default: standard output.
	Out io.Writer
	// Work works until ctx ends. An error of Misuse is a mistake of the caller's.
	Work func(ctx context.Context, log *slog.Logger) error
}

// Main runs a binary until SIGTERM or SIGINT ends the context, and leaves with its exit code.
func Main(run func(ctx context.Context, args []string) int) {
	ctx, stop := UntilSignal()
	defer stop()
	os.Exit(run(ctx, os.Args[1:])) //nolint:gocritic // the process ends, and its signals with it
}

// UntilSignal ends with SIGTERM or SIGINT, and gives the signals back then: a second one ends the process at once.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Run returns the exit code: 0 stopped, 1 failed, 2 usage.
func (p Program) Run(ctx context.Context, args []string) int {
	flags := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {}
	config.Bind(flags, p.Settings)
	version := flags.Bool("version", false, "print the versions of this binary and of the SQL in it")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return p.print(p.Usage + flags.FlagUsages())
	case err != nil:
		return p.complain(Misuse(fmt.Errorf("%w%s; see --help", err, meant(flags, err))))
	case *version:
		return p.print(p.versions())
	}
	if flags.NArg() > 0 {
		return p.complain(Misuse(fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))))
	}
	if err := config.Load(p.Settings, config.Sources{Flags: flags}); err != nil {
		return p.complain(Misuse(err))
	}
	level, err := telemetry.ParseLevel(*p.LogLevel)
	if err != nil {
		return p.complain(Misuse(err))
	}
	log := telemetry.NewLogger(os.Stderr, level)
	for name, meant := range config.Misspelt(os.Environ()) {
		log.Warn("a variable that is no setting means nothing", "variable", name, "meant", meant)
	}
	if err := p.Work(ctx, log); err != nil {
		return p.complain(err)
	}
	return 0
}

// meant is a hint at the flag that was misspelt, or "".
func meant(flags *pflag.FlagSet, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var all []string
	flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	name := nearest.Name(unknown.GetSpecifiedName(), all)
	if name == "" {
		return ""
	}
	return "; did you mean --" + name + "?"
}

// print answers what was asked for.
func (p Program) print(text string) int {
	if p.Out == nil {
		p.Out = os.Stdout
	}
	if _, err := io.WriteString(p.Out, text); err != nil {
		return p.complain(fmt.Errorf("writing: %w", err))
	}
	return 0
}

type misuse struct{ error }

// Unwrap gives the mistake.
func (m misuse) Unwrap() error { return m.error }

// Misuse marks an error as the caller's mistake: exit code 2.
func Misuse(err error) error { return misuse{err} }

// CheckURLs refuses, as the caller's mistake, a database that is not named and URLs that cannot be read: nothing else would
// notice before the database is reached. listener may be off.
func CheckURLs(database, listener string) error {
	if database == "" {
		return Misuse(errors.New("no database is named; set PAWL_DATABASE_URL or --database-url"))
	}
	if _, err := pgxpool.ParseConfig(database); err != nil {
		return Misuse(NoURL("database_url"))
	}
	if listener != "" && listener != config.Off {
		if _, err := pgxpool.ParseConfig(listener); err != nil {
			return Misuse(NoURL("listener_url"))
		}
	}
	return nil
}

// NoURL is the error of a URL that cannot be read, by its name. What stands in it may be a password, so it is left out.
func NoURL(name string) error {
	return fmt.Errorf("reading %s: it is no Postgres URL; it looks like postgres://user@host:5432/database", name)
}

func (p Program) complain(err error) int {
	fmt.Fprintf(os.Stderr, "%s: %s\n", p.Name, err)
	if errors.As(err, new(misuse)) {
		return 2
	}
	return 1
}
