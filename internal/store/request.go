package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/messaging"
)

// Template is what a task request must know of its template.
type Template struct {
	ID       int
	Parked   string // why its requests wait, or ""
	Strategy string // of its tasks' identity: default, caller_provided, strict, always_unique
}

// FindTemplates looks templates up, in one statement; one that does not exist is not in the answer. Without a version the
// latest applied one is meant.
func FindTemplates(ctx context.Context, db DB, refs []messaging.TemplateRef) (map[messaging.TemplateRef]Template, error) {
	namespaces, names, versions := make([]string, len(refs)), make([]string, len(refs)), make([]string, len(refs))
	for i, r := range refs {
		namespaces[i], names[i], versions[i] = r.Namespace, r.Name, r.Version
	}
	rows, err := db.Query(ctx, `
		select r.ord, t.template_id, coalesce(t.parked_reason, ''), t.identity_strategy
		from unnest($1::text[], $2::text[], $3::text[]) with ordinality r(namespace, name, version, ord)
		cross join lateral (
		  select t.template_id, t.parked_reason, t.identity_strategy from pawl.templates t
		  where t.namespace = r.namespace and t.name = r.name and not t.adhoc and (r.version = '' or t.version = r.version)
		  order by t.template_id desc limit 1) t`, namespaces, names, versions)
	if err != nil {
		return nil, fmt.Errorf("looking up templates: %w", err)
	}
	found := make(map[messaging.TemplateRef]Template, len(refs))
	var ord int
	var t Template
	if _, err := pgx.ForEachRow(rows, []any{&ord, &t.ID, &t.Parked, &t.Strategy}, func() error {
		found[refs[ord-1]] = t
		return nil
	}); err != nil {
		return nil, fmt.Errorf("looking up templates: %w", err)
	}
	return found, nil
}

// TemplateNames lists templates as namespace/name, at most a thousand, to suggest what was meant.
func TemplateNames(ctx context.Context, db DB) ([]string, error) {
	rows, err := db.Query(ctx, `select distinct namespace || '/' || name from pawl.templates where not adhoc limit 1000`)
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	return names, nil
}

// InputSchemas returns the input schemas of templates; nil for one without. A template never changes, so that a schema
// may be kept by its template's id.
func InputSchemas(ctx context.Context, db DB, ids []int) (map[int][]byte, error) {
	rows, err := db.Query(ctx, `select template_id, nullif(definition->'input_schema', 'null')::text
		from pawl.templates where template_id = any ($1)`, ids)
	if err != nil {
		return nil, fmt.Errorf("loading input schemas: %w", err)
	}
	schemas := make(map[int][]byte, len(ids))
	var id int
	var schema *string
	if _, err := pgx.ForEachRow(rows, []any{&id, &schema}, func() error {
		schemas[id] = nil
		if schema != nil {
			schemas[id] = []byte(*schema)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("loading input schemas: %w", err)
	}
	return schemas, nil
}

// AdhocTemplate finds or makes the one-step template behind requests that name a handler. queue "" means the
// namespace's.
func AdhocTemplate(ctx context.Context, db DB, namespace, handler, queue string) (int, error) {
	var id int
	err := db.QueryRow(ctx, `select pawl.adhoc_template($1, $2, nullif($3, ''))`, namespace, handler, queue).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("finding the template of handler %s/%s: %w", namespace, handler, err)
	}
	return id, nil
}

// Invalid is the answer to a request that cannot be fulfilled, in the form its sender sees.
type Invalid struct {
	Error   string `json:"error"` // InvalidRequest, UnknownTemplate, InvalidInput, KeyRequired
	Message string `json:"message"`
}

// Decision is what the checks made of one request: a template, or the reason to refuse it.
type Decision struct {
	MessageID   int64    `json:"msg_id"`
	TemplateID  int      `json:"template_id,omitempty"`
	Invalid     *Invalid `json:"invalid,omitempty"`
	Traceparent string   `json:"traceparent,omitempty"` // of the span that made the decision
}

// Outcome of one request.
type Outcome struct {
	MessageID int64
	Outcome   messaging.Outcome
	TaskID    string // empty when it is invalid
}

// left is the outcome of a request that the bound of steps in one transaction kept in its queue.
const left messaging.Outcome = "left"

// ProcessRequests turns decided requests into tasks: R2's second transaction. It takes as many as the bound of steps in
// one transaction allows, and returns the decisions about the rest, which are for another transaction (R13).
func ProcessRequests(ctx context.Context, db DB, decisions []Decision, processor string) ([]Outcome, []Decision, error) {
	encoded, err := json.Marshal(decisions)
	if err != nil {
		return nil, nil, fmt.Errorf("processing %d task requests: %w", len(decisions), err)
	}
	rows, err := db.Query(ctx, `
		select (o->>'msg_id')::bigint, o->>'outcome', coalesce(o->>'task_id', '')
		from jsonb_array_elements(pawl.process_task_requests($1::text::jsonb, $2)) o`, string(encoded), processor) // text: bytes are no JSON without types (simple protocol)
	if err != nil {
		return nil, nil, fmt.Errorf("processing %d task requests: %w", len(decisions), err)
	}
	outcomes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Outcome, err error) {
		return o, row.Scan(&o.MessageID, &o.Outcome, &o.TaskID)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("processing %d task requests: %w", len(decisions), err)
	}
	outcomes, rest := split(outcomes, decisions)
	return outcomes, rest, nil
}

// split takes what was left out of the outcomes, and gives the decisions about it.
func split(outcomes []Outcome, decisions []Decision) ([]Outcome, []Decision) {
	stays := make(map[int64]bool)
	for _, o := range outcomes {
		if o.Outcome == left {
			stays[o.MessageID] = true
		}
	}
	if len(stays) == 0 {
		return outcomes, nil
	}
	outcomes = slices.DeleteFunc(outcomes, func(o Outcome) bool { return o.Outcome == left })
	return outcomes, slices.DeleteFunc(slices.Clone(decisions), func(d Decision) bool { return !stays[d.MessageID] })
}
