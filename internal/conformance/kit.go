package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// lookEvery is the time between looks for what must come.
const lookEvery = 20 * time.Millisecond

// role of the worker in the database: by it, its connections are known.
const role = "conformance_worker"

// kit has what checks need.
type kit struct {
	config  Config
	pool    *pgxpool.Pool
	process *process
}

// decorate makes copies and newer versions of messages whose input asks for it: a marker in the input, because the message
// is out of our hands as soon as it is committed.
const decorate = `
	create function pawl_conformance_decorate() returns trigger language plpgsql as $$
	begin
	  if new.message->'input'->>'marker' = 'newer' then
	    new.message := new.message || '{"from_the_future": {"a": [1, null]}, "priority": 5}';
	    new.headers := coalesce(new.headers, '{}') || '{"from-the-future": ["x"]}';
	  elsif new.message->'input'->>'marker' = 'twice' and new.message->>'copy' is null then
	    insert into pgmq.q_conformance_queue (vt, message, headers)
	    values (new.vt, new.message || '{"copy": "second"}', new.headers);
	  end if;
	  return new;
	end $$;
	create trigger decorate before insert on pgmq.q_conformance_queue for each row execute function pawl_conformance_decorate()`

// prepare makes the worker's role and its queue, and returns the worker's address of the database.
func (k *kit) prepare(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	password, _ := u.User.Password()
	u.User = url.UserPassword(role, password)
	_, err = k.pool.Exec(ctx, fmt.Sprintf(`create role %s login superuser password '%s'`, role, strings.ReplaceAll(password, "'", "''")))
	if err == nil {
		_, err = k.pool.Exec(ctx, `select pawl.install_queue($1)`, Queue)
	}
	if err == nil {
		_, err = k.pool.Exec(ctx, decorate)
	}
	return u.String(), err
}

// request asks for a task. The zero value of its fields is left out.
type request struct {
	Handler, Template string
	Input             any
	CorrelationID     string
}

// submit sends a request and returns the task's id.
func (k *kit) submit(ctx context.Context, r request) (uuid.UUID, error) {
	ids, err := k.submitMany(ctx, []request{r})
	if err != nil {
		return uuid.Nil, err
	}
	return ids[0], nil
}

func (k *kit) submitMany(ctx context.Context, requests []request) ([]uuid.UUID, error) {
	ids, bodies := make([]uuid.UUID, len(requests)), make([]string, len(requests))
	for i, r := range requests {
		input, err := json.Marshal(r.Input)
		if err != nil {
			return nil, fmt.Errorf("writing the input: %w", err)
		}
		body := messaging.TaskRequest{RequestID: messaging.NewRequestID(), Input: input, Template: r.Template, CorrelationID: r.CorrelationID}
		if r.Handler != "" {
			body.Handler, body.Queue = r.Handler, Queue
		}
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("writing the request: %w", err)
		}
		ids[i], bodies[i] = body.RequestID, string(text)
	}
	if _, err := k.pool.Exec(ctx, `select pgmq.send_batch($1, $2::text[]::jsonb[])`, messaging.TaskRequests, bodies); err != nil {
		return nil, fmt.Errorf("sending requests: %w", err)
	}
	return ids, nil
}

// template registers a template of the namespace conformance from YAML, without its namespace, name and version. Steps say
// where their queue stands: QUEUE.
func (k *kit) template(ctx context.Context, name, rest string) (ref string, err error) {
	text := fmt.Sprintf("namespace: conformance\nname: %s\nversion: \"1\"\n%s", name, strings.ReplaceAll(rest, "QUEUE", Queue))
	parsed, err := workflow.ParseTemplates(name+".yaml", []byte(text))
	if err != nil {
		return "", err
	}
	if _, err := k.pool.Exec(ctx, `select pawl.register_template($1::text::jsonb)`, string(parsed[0].Definition())); err != nil {
		return "", fmt.Errorf("registering template %s: %w", name, err)
	}
	return "conformance/" + name, nil
}

// step is what checks look at of a step.
type step struct {
	State, Result                 string
	Attempt, Deliveries, Failures int
	Worker                        string
	Waits                         float64 // seconds from the last change to due_at
	Error                         struct {
		Type, Message string
		Retryable     *bool
		RetryAfter    float64 `json:"retry_after"`
	}
}

var errNoStep = errors.New("there is no such step yet")

func (k *kit) step(ctx context.Context, task uuid.UUID, name string) (s step, err error) {
	var failure []byte
	err = k.pool.QueryRow(ctx, `
		select state, coalesce(result::text, ''), attempt, deliveries, failures, coalesce(worker, ''),
			coalesce(extract(epoch from due_at - state_since)::float, 0), error::text
		from pawl.steps where task_id = $1 and step = $2`, task, name).
		Scan(&s.State, &s.Result, &s.Attempt, &s.Deliveries, &s.Failures, &s.Worker, &s.Waits, &failure)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, errNoStep
	}
	if err == nil && failure != nil {
		err = json.Unmarshal(failure, &s.Error)
	}
	return s, err
}

// await waits until a step is in one of the states.
func (k *kit) await(ctx context.Context, task uuid.UUID, name string, states ...string) (s step, err error) {
	err = k.until(ctx, func() (bool, error) {
		s, err = k.step(ctx, task, name)
		if errors.Is(err, errNoStep) {
			return false, nil
		}
		for _, state := range states {
			if s.State == state {
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		return s, fmt.Errorf("waiting for step %s to be %s: it is %s in attempt %d, delivery %d%s: %w",
			name, strings.Join(states, " or "), s.State, s.Attempt, s.Deliveries, s.failure(), err)
	}
	return s, nil
}

func (s step) failure() string {
	if s.Error.Type == "" {
		return ""
	}
	return fmt.Sprintf(", error %s: %.200s", s.Error.Type, s.Error.Message)
}

var errPatience = errors.New("patience is over")

// until waits until a condition holds.
func (k *kit) until(ctx context.Context, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.config.Patience, errPatience)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// taken waits until a worker has read the task's message.
func (k *kit) taken(ctx context.Context, task uuid.UUID) error {
	return k.messages(ctx, task, `max(read_ct) > 0`, "a worker reads the step's message")
}

// gone waits until nothing of the task is in the worker's queue.
func (k *kit) gone(ctx context.Context, task uuid.UUID) error {
	return k.messages(ctx, task, `count(*) = 0`, "the step's message is gone")
}

func (k *kit) messages(ctx context.Context, task uuid.UUID, condition, what string) error {
	err := k.until(ctx, func() (ok bool, err error) {
		err = k.pool.QueryRow(ctx, fmt.Sprintf(`select coalesce(%s, false) from pgmq.q_%s where message->>'task_id' = $1::text`, condition, Queue), task).Scan(&ok)
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// expire ends the lease of the task's message, as time would.
func (k *kit) expire(ctx context.Context, task uuid.UUID) error {
	_, err := k.pool.Exec(ctx, fmt.Sprintf(`update pgmq.q_%s set vt = clock_timestamp() where message->>'task_id' = $1::text`, Queue), task)
	return err
}

// completes runs one step to its end and compares its result with what is wanted, as jsonb does.
func (k *kit) completes(ctx context.Context, r request, want any) (s step, err error) {
	task, err := k.submit(ctx, r)
	if err != nil {
		return s, err
	}
	if s, err = k.await(ctx, task, "run", "complete", "error"); err != nil {
		return s, err
	}
	return s, k.compare(ctx, s, want)
}

func (k *kit) compare(ctx context.Context, s step, want any) error {
	if s.State != "complete" {
		return fmt.Errorf("the step is %s%s", s.State, s.failure())
	}
	text, err := json.Marshal(want)
	if err != nil {
		return fmt.Errorf("writing what is wanted: %w", err)
	}
	var same bool
	if err := k.pool.QueryRow(ctx, `select $1::text::jsonb = $2::text::jsonb`, s.Result, string(text)).Scan(&same); err != nil {
		return fmt.Errorf("comparing results: %w", err)
	}
	if !same {
		return fmt.Errorf("the result is %.200s, and should be %.200s", s.Result, text)
	}
	return nil
}
