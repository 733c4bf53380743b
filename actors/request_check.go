package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/internal/jsonschema"
	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// requestCheck is one request on its way to a decision.
type requestCheck struct {
	message  store.Message
	request  messaging.TaskRequest
	ref      messaging.TemplateRef // unless it names a handler
	decision store.Decision
	waits    bool // for a newer program, or for its template to be unparked
}

func (c *requestCheck) refuse(kind, format string, args ...any) {
	c.decision.Invalid = &store.Invalid{Error: kind, Message: fmt.Sprintf(format, args...)}
}

// open says that the check has not ended yet.
func (c *requestCheck) open() bool { return c.decision.Invalid == nil && !c.waits }

// checkRequests decides what each request is: of a template, invalid, or to be put back. The database is asked once for
// all templates, once for schemas not seen before, and once for each new pair of handler and queue.
func checkRequests(ctx context.Context, db store.DB, known *schemas, batch []store.Message) ([]store.Decision, []store.Message, error) {
	checks := make([]requestCheck, len(batch))
	for i, m := range batch {
		checks[i] = requestCheck{message: m, decision: store.Decision{MessageID: m.ID}}
		checks[i].read()
	}
	if err := findTemplates(ctx, db, checks); err != nil {
		return nil, nil, err
	}
	if err := findHandlers(ctx, db, checks); err != nil {
		return nil, nil, err
	}
	if err := known.check(ctx, db, checks); err != nil {
		return nil, nil, err
	}
	decisions, waiting := make([]store.Decision, 0, len(checks)), []store.Message(nil)
	for _, c := range checks {
		if c.waits {
			waiting = append(waiting, c.message)
		} else {
			decisions = append(decisions, c.decision)
		}
	}
	return decisions, waiting, nil
}

// read decodes the body, within the limits at the door.
func (c *requestCheck) read() {
	body := c.message.Body
	if c.message.Size < 0 {
		c.refuse("InvalidRequest", "task request: the body has a number whose exponent is over the limit of %d", messaging.MaxExponent)
		return
	}
	if body == nil && c.message.Size == 0 {
		c.refuse("InvalidRequest", "task request: the message is null, not a JSON object")
		return
	}
	if body == nil {
		c.refuse("InvalidRequest", "task request: the body has %d bytes, over the limit of %d", c.message.Size, messaging.MaxBody)
		return
	}
	if len(body) > messaging.MaxBody { // the limit is the sender's bytes, and jsonb's text has blanks
		var compact bytes.Buffer
		if json.Compact(&compact, body) == nil {
			body = compact.Bytes()
		}
	}
	err := pgmq.CheckJSON(body, stored)
	if err == nil {
		c.request, err = messaging.DecodeTaskRequest(body)
	}
	var newer *messaging.NewerVersionError
	switch {
	case errors.As(err, &newer):
		c.waits = true
	case err != nil:
		c.refuse("InvalidRequest", "%s", err)
	case c.request.Template != "":
		c.ref, _ = messaging.ParseTemplateRef(c.request.Template) // decoding has tried it
	}
}

// stored are the limits at the door as they show in jsonb, which writes numbers out in full: what a sender may write as
// 1e999 has a thousand digits here.
var stored = pgmq.JSONLimits{Size: messaging.MaxBody, Depth: messaging.MaxDepth,
	Number: messaging.MaxNumber + messaging.MaxExponent + 1, Exponent: messaging.MaxExponent}

func findTemplates(ctx context.Context, db store.DB, checks []requestCheck) error {
	wanted := make(map[messaging.TemplateRef]bool)
	var refs []messaging.TemplateRef
	for i := range checks {
		if c := &checks[i]; c.open() && c.request.Template != "" && !wanted[c.ref] {
			wanted[c.ref] = true
			refs = append(refs, c.ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	found, err := store.FindTemplates(ctx, db, refs)
	if err != nil {
		return err
	}
	var names []string
	if len(found) < len(refs) {
		if names, err = store.TemplateNames(ctx, db); err != nil {
			return err
		}
	}
	for i := range checks {
		c := &checks[i]
		if !c.open() || c.request.Template == "" {
			continue
		}
		switch template, ok := found[c.ref]; {
		case !ok:
			c.refuse("UnknownTemplate", "template %s is not applied%s", c.ref,
				nearest.Suggestion(c.ref.Namespace+"/"+c.ref.Name, names))
		case template.Strategy == "caller_provided" && c.request.Key == "":
			c.refuse("KeyRequired", "template %s wants a key with each request: set key", c.ref)
		case template.Parked != "":
			c.waits = true
		default:
			c.decision.TemplateID = template.ID
		}
	}
	return nil
}

func findHandlers(ctx context.Context, db store.DB, checks []requestCheck) error {
	type place struct{ namespace, handler, queue string }
	found := make(map[place]int)
	for i := range checks {
		c := &checks[i]
		if !c.open() || c.request.Handler == "" {
			continue
		}
		at := place{c.request.Namespace, c.request.Handler, c.request.Queue}
		if at.namespace == "" {
			at.namespace = messaging.DefaultNamespace
		}
		id, ok := found[at]
		if !ok {
			var err error
			if id, err = store.AdhocTemplate(ctx, db, at.namespace, at.handler, at.queue); err != nil {
				return err
			}
			found[at] = id
		}
		c.decision.TemplateID = id
	}
	return nil
}

// schemas keeps the compiled input schemas of templates. A template never changes, so neither does what is kept.
type schemas struct {
	mu   sync.Mutex
	byID map[int]checker // guarded by mu
}

// checker of inputs. Without a schema every input is right; with one that cannot be compiled (it could when the template
// was applied) none is.
type checker struct {
	schema *jsonschema.Schema
	broken error
}

func (c checker) validate(input []byte) error {
	if c.schema == nil {
		return c.broken
	}
	return c.schema.Validate(input)
}

// maxSchemas is how many are kept; then all are forgotten.
const maxSchemas = 2000

func (s *schemas) check(ctx context.Context, db store.DB, checks []requestCheck) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wanted []int
	for i := range checks {
		if c := &checks[i]; c.open() && c.request.Template != "" && !slices.Contains(wanted, c.decision.TemplateID) {
			wanted = append(wanted, c.decision.TemplateID)
		}
	}
	if err := s.load(ctx, db, wanted); err != nil {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if !c.open() || c.request.Template == "" {
			continue // what names a handler has no schema
		}
		known, ok := s.byID[c.decision.TemplateID]
		if !ok {
			return fmt.Errorf("checking input of %s: template %d is not in the database", c.ref, c.decision.TemplateID)
		}
		if err := known.validate(c.request.Input); err != nil {
			c.decision.TemplateID = 0
			c.refuse("InvalidInput", "input of %s: %s", c.ref, err)
		}
	}
	return nil
}

// load sees to it that the schemas of all these templates are kept.
func (s *schemas) load(ctx context.Context, db store.DB, ids []int) error {
	missing := slices.DeleteFunc(slices.Clone(ids), func(id int) bool {
		_, ok := s.byID[id]
		return ok
	})
	if len(missing) == 0 {
		return nil
	}
	if s.byID == nil || len(s.byID) > maxSchemas {
		s.byID, missing = make(map[int]checker), ids
	}
	texts, err := store.InputSchemas(ctx, db, missing)
	if err != nil {
		return err
	}
	for id, text := range texts {
		var c checker
		if text != nil {
			c.schema, c.broken = jsonschema.Compile(text)
		}
		s.byID[id] = c
	}
	return nil
}
