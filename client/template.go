package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/workflow"
)

// AppliedTemplate says what applying a template did.
type AppliedTemplate struct {
	Template      string   `json:"template"` // namespace/name@version
	ID            int      `json:"template_id"`
	Created       bool     `json:"created"`        // false: it was there with the same content
	QueuesCreated []string `json:"queues_created"` // also those of which something was gone
}

// ApplyTemplates makes templates known to the database, all of them or none, and creates their queues. A version that is
// there with the same content is left as it is, but for queues that somebody dropped; with other content it is
// ErrTemplateChanged. Templates are those that workflow.ParseTemplates or workflow.ParseFS has made.
func (c *Client) ApplyTemplates(ctx context.Context, templates ...*workflow.Template) ([]AppliedTemplate, error) {
	for i, t := range templates {
		switch {
		case t == nil:
			return nil, fmt.Errorf("applying template %d of %d: it is nil", i+1, len(templates))
		case t.Definition() == nil:
			return nil, fmt.Errorf("applying template %d of %d: %s has no definition: make it with workflow.ParseTemplates or workflow.ParseFS", i+1, len(templates), t.Ref())
		}
	}
	applied := make([]AppliedTemplate, len(templates))
	err := c.borrow(ctx, func(conn *pgxpool.Conn) error { return apply(ctx, conn, templates, applied) })
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// apply is one transaction.
func apply(ctx context.Context, conn *pgxpool.Conn, templates []*workflow.Template, applied []AppliedTemplate) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for i, t := range templates {
			var answer []byte
			err := tx.QueryRow(ctx, `select pawl.register_template($1::text::jsonb)::text`, string(t.Definition())).Scan(&answer)
			if err == nil {
				err = json.Unmarshal(answer, &applied[i])
			}
			if err != nil {
				return fmt.Errorf("applying template %s: %w", t.Ref(), commandError(err))
			}
			applied[i].Template = t.Ref()
		}
		return nil
	})
}
