package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/workflow"
)

func (a *app) queueCommand() *cobra.Command {
	return group("queue", "List, pause, resume and configure queues",
		"Queues make themselves when a template or a first request names them. orchestration_* are the engine's own.",
		a.queueList(), a.queuePause(), a.queueResume(), a.queueConfigure())
}

type queueRow struct {
	Queue          string   `json:"queue"`
	Engine         bool     `json:"engine"`
	Paused         bool     `json:"paused"`
	Missing        bool     `json:"missing,omitempty"` // its table is gone
	Problem        string   `json:"problem,omitempty"` // what it lacks, and what to do
	Length         int64    `json:"length"`
	Visible        int64    `json:"visible"`
	OldestAge      *float64 `json:"oldest_age_s"` // null: it is empty
	Held           int64    `json:"held"`
	RateLimit      int      `json:"rate_limit,omitempty"`
	RatePeriod     float64  `json:"rate_period_s,omitempty"`
	Burst          int      `json:"burst,omitempty"`
	MaxConcurrency int      `json:"max_concurrency,omitempty"`
	Retention      float64  `json:"retention_s,omitempty"`
}

func readQueues(ctx context.Context, db *database) ([]queueRow, error) {
	queues, err := db.client.Queues(ctx)
	list := make([]queueRow, len(queues))
	for i, q := range queues {
		list[i] = queueRow{
			Queue: q.Name, Engine: q.Engine, Paused: q.Paused, Missing: q.Missing, Length: q.Depth, Visible: q.Visible, Held: q.Held, RateLimit: q.RateLimit,
			RatePeriod: q.RatePeriod.Seconds(), Burst: q.Burst, MaxConcurrency: q.MaxConcurrency, Retention: q.Retention.Seconds(),
		}
		if q.Depth > 0 {
			age := q.Oldest.Seconds()
			list[i].OldestAge = &age
		}
	}
	return list, err
}

// explainQueues says of each queue what it lacks.
func explainQueues(ctx context.Context, db *database, queues []queueRow) error {
	rows, err := db.Query(ctx, `select q.queue, e.says from pawl.queues q cross join lateral pawl.explain_queue(q.queue) e(says)
		where e.says is not null`)
	if err != nil {
		return fmt.Errorf("looking for what queues lack: %w", err)
	}
	var name, says string
	_, err = pgx.ForEachRow(rows, []any{&name, &says}, func() error {
		for i := range queues {
			if queues[i].Queue == name {
				queues[i].Problem = says
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for what queues lack: %w", err)
	}
	return nil
}

func (a *app) queueList() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the queues that workers read, with lengths and limits",
		Long: `Lists the queues that workers read. WAITING is what a worker may take now, TAKEN what is leased or delayed, HELD what
a limit or a pause keeps back, OLDEST the age of the oldest message. What a queue lacks that somebody dropped is said below:
pausing, resuming or configuring it makes it whole, and the attempts whose messages are lost end then.`,
		Example: "  pawl queue list\n  pawl queue list --all     # the engine's own, too",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(db *database) error {
				list, err := readQueues(ctx, db)
				if err != nil {
					return err
				}
				shown := slices.DeleteFunc(list, func(q queueRow) bool { return q.Engine && !all })
				if err := explainQueues(ctx, db, shown); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(shown)
				}
				lines := make([][]string, len(shown))
				for i, q := range shown {
					lines[i] = q.line()
				}
				err = a.table([]string{"QUEUE", "WAITING", "TAKEN", "HELD", "OLDEST", "LIMITS"}, lines,
					"No queues yet: they make themselves when a template is applied. See pawl template apply --help")
				for _, q := range shown {
					if q.Problem != "" {
						a.say("%s", q.Problem)
					}
				}
				return err
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "also the engine's own queues")
	return c
}

func (q queueRow) line() []string {
	if q.Missing {
		return []string{q.Queue, "-", "-", fmt.Sprint(q.Held), "-", q.limits()}
	}
	oldest := "-"
	if q.OldestAge != nil {
		oldest = span(time.Duration(*q.OldestAge * float64(time.Second)))
	}
	return []string{q.Queue, fmt.Sprint(q.Visible), fmt.Sprint(q.Length - q.Visible), fmt.Sprint(q.Held), oldest, q.limits()}
}

func (q queueRow) limits() string {
	limits := ""
	add := func(format string, args ...any) {
		if limits != "" {
			limits += ", "
		}
		limits += fmt.Sprintf(format, args...)
	}
	if q.Paused {
		add("paused")
	}
	if q.RateLimit > 0 {
		add("%d per %s", q.RateLimit, workflow.FormatDuration(time.Duration(q.RatePeriod*float64(time.Second))))
	}
	if q.Burst > 0 {
		add("burst %d", q.Burst)
	}
	if q.MaxConcurrency > 0 {
		add("%d at once", q.MaxConcurrency)
	}
	if limits == "" {
		return "-"
	}
	return limits
}

func (a *app) queuePause() *cobra.Command {
	return a.operatorFlags(&cobra.Command{
		Use:     "pause QUEUE",
		Short:   "Hold back new steps of a queue; what workers already hold goes on",
		Example: `  pawl queue pause shop_parcels --reason "carrier is down"`,
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.change(ctx, "queue "+args[0]+" paused", func(c *client.Client, by client.By) (client.Outcome, error) { return c.PauseQueue(ctx, args[0], by) })
		}),
	})
}

func (a *app) queueResume() *cobra.Command {
	return a.operatorFlags(&cobra.Command{
		Use:     "resume QUEUE",
		Short:   "Let the steps of a paused queue go on",
		Example: `  pawl queue resume shop_parcels --reason "carrier is back"`,
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.change(ctx, "queue "+args[0]+" resumed", func(c *client.Client, by client.By) (client.Outcome, error) { return c.ResumeQueue(ctx, args[0], by) })
		}),
	})
}

func (a *app) queueConfigure() *cobra.Command {
	var rate, retention string
	var burst, concurrency *int
	c := a.operatorFlags(&cobra.Command{
		Use:   "configure QUEUE",
		Short: "Set a queue's limits, for all instances at once",
		Long: `Sets a queue's limits in the database, for all instances at once and within a second. Only what is named changes;
"none" takes a limit away. A queue that is not there yet is made.`,
		Example: `  pawl queue configure shop_pricing --rate-limit 100/sec --burst 20 --reason "provider's quota"
  pawl queue configure shop_parcels --max-concurrency 8 --reason "carrier allows 8 connections"
  pawl queue configure shop_pricing --rate-limit none --reason "quota lifted"`,
		Args: cobra.ExactArgs(1),
	})
	flags := c.Flags()
	flags.StringVar(&rate, "rate-limit", "", "attempts begun per time, as 100/sec, 30/min or 500/hour, or none")
	flags.Var(limitFlag{&burst}, "burst", "how many may begin at once under a rate limit, or none")
	flags.Var(limitFlag{&concurrency}, "max-concurrency", "how many may run at once, or none")
	flags.StringVar(&retention, "retention", "", "how long finished one-step tasks of the queue are kept, as 7d, or none")
	c.RunE = run(func(ctx context.Context, args []string) error {
		settings := client.QueueSettings{RateLimit: orNone(rate), Burst: burst, MaxConcurrency: concurrency, Retention: orNone(retention)}
		if settings == (client.QueueSettings{}) {
			return usagef("nothing to set: name --rate-limit, --burst, --max-concurrency or --retention")
		}
		return a.change(ctx, "queue "+args[0]+" configured", func(c *client.Client, by client.By) (client.Outcome, error) {
			return c.ConfigureQueue(ctx, args[0], settings, by)
		})
	})
	return c
}

// orNone is a setting that stays as it is when it is not given, and is taken back by none.
func orNone(value string) *string {
	switch value {
	case "":
		return nil
	case "none":
		value = ""
	}
	return &value
}
