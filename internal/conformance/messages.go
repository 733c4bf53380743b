package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// object is JSON.
type object = map[string]any

// shapes are inputs that have to come back as they were.
var shapes = []any{
	nil, true, false, 0, -1, 1.5, "", "text", []any{}, object{}, []any{1, []any{nil, object{"a": []any{}}}},
	object{"a": nil, "b": object{"c": []any{1, "2", false}}, "empty": object{}, "list": []any{}},
}

// texts are what worker's languages may break, as values and as keys.
var texts = []string{
	"Größe, naïve, Ωmega", "日本語と한국어", "😀👩‍👩‍👧‍👦🏳️‍🌈", "مرحبا שלום", "e\u0301 \u200b \u2028 \ufeff",
	`"quoted" \back\ /slash/ 'single' $1 %s`, "tab\tnew\nline\r\b\f\u0001\u001f", "'; drop table pawl.tasks; --",
}

func messageChecks() []check {
	return []check{
		{Name: "echoes JSON of every shape", Run: echoes(shapes)},
		{Name: "echoes unicode and escapes, in values and keys", Run: echoesTexts},
		{Name: "echoes numbers as they are", Run: echoes([]any{
			json.Number("9007199254740991"), json.Number("-9007199254740991"), json.Number("0.1"), json.Number("1e-7"), json.Number("123456789.25")})},
		{Name: "gets results of needed steps, and the config", Run: gathers("gather", "small")},
		{Name: "gets large inputs and dependencies by reference", Run: gathers("gather_large", incompressible(2_000))},
		{Name: "returns a result of 900 kB", Run: func(ctx context.Context, k *kit) error {
			text := strings.Repeat("x", 900_000)
			_, err := k.completes(ctx, request{Handler: "echo", Input: text}, text)
			return err
		}},
		{Name: "ignores unknown fields and headers of a newer engine", Run: func(ctx context.Context, k *kit) error {
			input := object{"marker": "newer"}
			_, err := k.completes(ctx, request{Handler: "echo", Input: input}, input)
			return err
		}},
		{Name: "knows the attempt, the token and the correlation id", Run: knowsFacts},
		{Name: "keeps its way through 200 steps at once", Run: many, Alone: true},
		{Name: "a duplicate of a message does no harm", Run: duplicate},
	}
}

func echoes(inputs []any) func(context.Context, *kit) error {
	return func(ctx context.Context, k *kit) error {
		requests := make([]request, len(inputs))
		for i, input := range inputs {
			requests[i] = request{Handler: "echo", Input: input}
		}
		tasks, err := k.submitMany(ctx, requests)
		if err != nil {
			return err
		}
		for i, task := range tasks {
			s, err := k.await(ctx, task, "run", "complete", "error")
			if err == nil {
				err = k.compare(ctx, s, inputs[i])
			}
			if err != nil {
				text, _ := json.Marshal(inputs[i]) // it was written before
				return fmt.Errorf("input %.100s: %w", text, err)
			}
		}
		return nil
	}
}

func echoesTexts(ctx context.Context, k *kit) error {
	all := object{}
	for _, text := range texts {
		all[text] = text
	}
	return echoes([]any{all})(ctx, k)
}

// incompressible text of n times 33 characters: what Postgres stores compactly would travel in the message.
func incompressible(n int) string {
	var text strings.Builder
	for i := range n {
		digest := sha256.Sum256([]byte(strconv.Itoa(i)))
		text.WriteString(hex.EncodeToString(digest[:16]) + "✓")
	}
	return text.String()
}

// gathers runs two steps and a third that returns what it got of them.
func gathers(name, text string) func(context.Context, *kit) error {
	return func(ctx context.Context, k *kit) error {
		ref, err := k.template(ctx, name, `
result: last
steps:
  - {name: left, handler: echo, queue: QUEUE}
  - {name: right, handler: facts, queue: QUEUE, config: {side: right}}
  - {name: last, handler: gather, queue: QUEUE, needs: [left, right], config: {percent: 19, "größe": [1, 2]}}
`)
		if err != nil {
			return err
		}
		input := object{"text": text}
		task, err := k.submit(ctx, request{Template: ref, Input: input})
		if err != nil {
			return err
		}
		if _, err := k.await(ctx, task, "left", "complete"); err != nil {
			return err
		}
		right, err := k.await(ctx, task, "right", "complete")
		if err != nil {
			return err
		}
		s, err := k.await(ctx, task, "last", "complete", "error")
		if err != nil {
			return err
		}
		return k.compare(ctx, s, object{
			"input":        input,
			"dependencies": object{"left": input, "right": json.RawMessage(right.Result)},
			"config":       object{"percent": 19, "größe": []int{1, 2}},
		})
	}
}

// knowsFacts makes one step fail once, so that two attempts can be compared.
func knowsFacts(ctx context.Context, k *kit) error {
	ref, err := k.template(ctx, "facts", `
retry: {backoff: fixed, base: 8s}
steps:
  - {name: run, handler: facts, queue: QUEUE}
`)
	if err != nil {
		return err
	}
	task, err := k.submit(ctx, request{Template: ref, Input: object{"fail_first": true}, CorrelationID: "c-1 ✓"})
	if err != nil {
		return err
	}
	s, err := k.await(ctx, task, "run", "waiting_for_retry", "complete", "error")
	if err != nil {
		return err
	}
	token := task.String() + "/run"
	if s.Error.Message != "token "+token {
		return fmt.Errorf(`the first attempt should fail with the message "token %s": the step is %s%s`, token, s.State, s.failure())
	}
	if s, err = k.await(ctx, task, "run", "complete", "error"); err != nil {
		return err
	}
	return k.compare(ctx, s, object{"attempt": 2, "token": token, "step": "run", "correlation_id": "c-1 ✓", "config": nil})
}

func many(ctx context.Context, k *kit) error {
	requests := make([]request, 200)
	for i := range requests {
		requests[i] = request{Handler: "echo", Input: object{"n": i}}
	}
	tasks, err := k.submitMany(ctx, requests)
	if err != nil {
		return err
	}
	for i, task := range tasks {
		s, err := k.await(ctx, task, "run", "complete", "error")
		if err == nil {
			err = k.compare(ctx, s, requests[i].Input)
		}
		if err == nil && (s.Failures != 0 || s.Attempt != 1) {
			err = fmt.Errorf("it took %d attempts", s.Attempt)
		}
		if err != nil {
			return fmt.Errorf("step %d of %d: %w", i+1, len(tasks), err)
		}
	}
	return nil
}

func duplicate(ctx context.Context, k *kit) error {
	input := object{"marker": "twice"}
	task, err := k.submit(ctx, request{Handler: "echo", Input: input})
	if err != nil {
		return err
	}
	s, err := k.await(ctx, task, "run", "complete", "error")
	if err != nil {
		return err
	}
	if err := k.gone(ctx, task); err != nil {
		return err
	}
	if err := k.compare(ctx, s, input); err != nil {
		return err
	}
	// Of two messages one ended the step; the other, or its result, was absorbed.
	return k.until(ctx, func() (bool, error) {
		var absorbed, dead int
		err := k.pool.QueryRow(ctx, `select (select count(*) from pawl.absorbed where task_id = $1), (select count(*) from pawl.dead_letters where task_id = $1)`, task).Scan(&absorbed, &dead)
		if err == nil && dead > 0 {
			err = errors.New("it became a dead letter")
		}
		return absorbed > 0, err
	})
}
