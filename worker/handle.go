package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/messaging"
)

// handler is a user's handler without its types.
type handler func(ctx context.Context, d *delivery) (json.RawMessage, error)

// Handle registers the handler for steps that name it, whichever of the worker's queues they come from. The input is
// decoded into In, the returned value becomes the step's result as JSON. It is called before Start; a name that is empty
// or taken, or a handler that is nil, is a mistake in the program: it panics. A goroutine may run one handler after another:
// what a handler locks to its thread or sets for its goroutine, it undoes.
func Handle[In, Out any](w *Worker, name string, handle func(ctx context.Context, step Step[In]) (Out, error)) {
	if handle == nil {
		panic(fmt.Sprintf("worker: registering handler %q: the function is nil", name))
	}
	whole := w.wrap(func(ctx context.Context, call Call) (any, error) {
		if call.delivery == nil {
			return nil, errNoDelivery // a middleware's own
		}
		step := Step[In]{Call: call}
		if err := decode(call.delivery.Input, &step.Input, w.config.RefuseUnknownFields); err != nil {
			return nil, Permanent(Error{Type: typeInvalidInput, Err: fmt.Errorf("reading input: %w", err)})
		}
		return handle(ctx, step)
	})
	w.register(name, func(ctx context.Context, d *delivery) (json.RawMessage, error) {
		out, err := whole(ctx, d.call())
		if err != nil {
			return nil, err
		}
		if d.isInTx() {
			return nil, nil // its result went with the transaction
		}
		return encode(out)
	})
}

func (w *Worker) register(name string, handle handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case name == "":
		panic("worker: registering a handler without a name")
	case w.handlers[name] != nil:
		panic(fmt.Sprintf("worker: registering handler %q twice", name))
	case w.started:
		panic(fmt.Sprintf("worker: registering handler %q after Start", name))
	}
	w.handlers[name] = handle
}

// encode makes a result of what a handler returned, or a permanent failure of what the database would refuse.
func encode(out any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(out)
	if err == nil {
		err = messaging.CheckBody(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	}
	if err != nil {
		return nil, Permanent(Error{Type: typeInvalidResult, Err: fmt.Errorf("writing result: %w", err)})
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// decode reads JSON into a Go value. Its errors name fields and hold no values.
func decode(text json.RawMessage, into any, refuseUnknown bool) error {
	if len(text) == 0 {
		return nil
	}
	if raw, same := into.(*json.RawMessage); same {
		*raw = text
		return nil
	}
	var err error
	if refuseUnknown {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(into)
	} else {
		err = json.Unmarshal(text, into)
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		kind, _, _ := bytes.Cut([]byte(mismatch.Value), []byte(" ")) // "number 12" says too much
		if mismatch.Field == "" {
			return fmt.Errorf("it is a JSON %s, and the handler wants %s", kind, mismatch.Type)
		}
		return fmt.Errorf("field %q is a JSON %s, and the handler wants %s", mismatch.Field, kind, mismatch.Type)
	}
	return err
}
