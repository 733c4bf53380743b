package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/messaging"
)

// submission is what submit and enqueue share.
type submission struct {
	request          messaging.TaskRequest
	input, inputFile string
	requestID, runAt string
	onDuplicate      string
	tags             []string
	wait             bool
	finishIn         time.Duration
}

// decisionIn is how long a submit waits for what becomes of its request when it does not wait for the end.
const decisionIn = 3 * time.Second

func (s *submission) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.input, "input", "", "the input, as JSON (default {})")
	flags.StringVar(&s.inputFile, "input-file", "", "file with the input, as JSON; - is standard input")
	flags.StringVar(&s.request.Key, "key", "", "what makes this request the same as another one, as an order's number")
	flags.StringVar(&s.onDuplicate, "on-duplicate", "", "when the key is held: attach (default: that task is the answer) or reject")
	flags.StringVar(&s.requestID, "request-id", "", "UUID that becomes the task's id; repeating it makes no second task")
	flags.StringVar(&s.request.Requester, "requester", "", "on whose behalf")
	flags.StringVar(&s.request.CorrelationID, "correlation-id", "", "id that other systems know this by")
	flags.StringVar(&s.runAt, "run-at", "", "do not start before: a time as 2026-03-01T08:00:00Z, or a duration as 15m")
	flags.StringVar(&s.request.ReplyTo, "reply-to", "", "existing queue that takes the answers")
	flags.StringArrayVar(&s.tags, "tag", nil, "NAME=VALUE, to find the task by; may be repeated")
	flags.BoolVar(&s.wait, "wait", false, "wait for the end and print the result")
	durationVar(flags, &s.finishIn, "timeout", "how long --wait waits (default: for ever)")
}

func (a *app) submitCommand() *cobra.Command {
	var s submission
	c := &cobra.Command{
		Use:   "submit NAMESPACE/NAME[@VERSION]",
		Short: "Start a task of a template",
		Long: `Starts a task of a template, and says what became of the request. A request that needs no decision is a task at once; another is
the message that any program could send with pgmq.send, and waits for an orchestrator.

A request with a key is a duplicate when an open or completed task of the template holds that key: it attaches to that
task, or is rejected with --on-duplicate reject (exit code 5). A task that failed gives its key free.`,
		Example: `  pawl submit shop/fulfil_order --input-file order.json --key S-1001
  pawl submit shop/fulfil_order@1 --input '{"order_id":"S-1001", …}' --wait --timeout 1m
  pawl submit billing/close_month --run-at 2026-04-01T00:00:00Z --tag month=2026-03`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			r, err := parseRef(args[0])
			if err != nil {
				return err
			}
			s.request.Template = args[0]
			if err := a.complete(ctx, &s); err != nil {
				return err
			}
			return a.with(ctx, func(db *database) error {
				if _, err := findTemplate(ctx, db, r); err != nil {
					return err
				}
				return a.submit(ctx, db, s)
			})
		}),
	}
	s.flags(c.Flags())
	return c
}

func (a *app) enqueueCommand() *cobra.Command {
	var s submission
	c := &cobra.Command{
		Use:   "enqueue HANDLER",
		Short: "Start a task of one step, without a template",
		Long:  "Starts a task of one step that runs the handler, without a template: a plain background job, with all that tasks have.",
		Example: `  pawl enqueue mail.send --namespace shop --input '{"to":"C-1001"}'
  pawl enqueue report.build --queue reports --key 2026-03 --wait`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			s.request.Handler = args[0]
			if err := a.complete(ctx, &s); err != nil {
				return err
			}
			return a.with(ctx, func(db *database) error { return a.submit(ctx, db, s) })
		}),
	}
	s.flags(c.Flags())
	c.Flags().StringVar(&s.request.Namespace, "namespace", "", "namespace of the task (default: default)")
	c.Flags().StringVar(&s.request.Queue, "queue", "", "queue of the step (default: NAMESPACE_queue)")
	return c
}

// complete turns the flags into the request and checks all that can be checked here.
func (a *app) complete(ctx context.Context, s *submission) error {
	var err error
	if s.request.Input, err = a.readInput(ctx, s.input, s.inputFile); err != nil {
		return err
	}
	s.request.OnDuplicate = messaging.OnDuplicate(s.onDuplicate)
	s.request.RequestID = messaging.NewRequestID()
	if s.requestID != "" {
		if s.request.RequestID, err = uuid.Parse(s.requestID); err != nil {
			return usagef("--request-id %q is not a UUID", s.requestID)
		}
	}
	if s.runAt != "" {
		if s.request.RunAt, err = parseTime(s.runAt); err != nil {
			return err
		}
	}
	if len(s.tags) > 0 {
		if s.request.Tags, err = parseTags(s.tags); err != nil {
			return err
		}
	}
	if err := s.request.Validate(); err != nil {
		return usagef("%w", err)
	}
	if err := messaging.CheckBody(s.request.Input); err != nil {
		return usagef("the input cannot be stored: %w", err)
	}
	if s.finishIn > 0 && !s.wait {
		return usagef("--timeout bounds --wait: add --wait, or leave --timeout out")
	}
	return nil
}

func (a *app) readInput(ctx context.Context, text, file string) (json.RawMessage, error) {
	switch {
	case text != "" && file != "":
		return nil, usagef("give --input or --input-file, not both")
	case text != "":
		return parseJSON("--input", text)
	case file == "":
		return json.RawMessage("{}"), nil
	}
	data, err := a.read(ctx, "--input-file", file)
	if err != nil {
		return nil, err
	}
	return parseJSON("--input-file", string(data))
}

func parseTime(s string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	var in time.Duration
	if err := (durationFlag{&in}).Set(s); err != nil {
		return time.Time{}, usagef("--run-at %q: write a time as 2026-03-01T08:00:00Z, or a duration as 15m", s)
	}
	return time.Now().Add(in).UTC(), nil
}

func (a *app) submit(ctx context.Context, db *database, s submission) error {
	if s.wait {
		return within(ctx, s.finishIn, func(ctx context.Context) error {
			d, err := decide(ctx, db.client, s.request, 0)
			if err != nil {
				return err
			}
			return a.awaitTask(ctx, db, d)
		})
	}
	d, err := decide(ctx, db.client, s.request, decisionIn)
	if err != nil {
		return err
	}
	return a.printDecision(d)
}
