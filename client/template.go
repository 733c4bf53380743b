package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/workflow"
)

// AppliedTemplate says what applying a template did.
type AppliedTemplate struct {
	Template      string   `json:"-"` // namespace/name@version
	ID            int      `json:"template_id"`
	Created       bool     `json:"created"`        // false: it was there with the same content
	QueuesCreated []string `json:"queues_created"` // also those of which something was gone
}

// ApplyTemplates makes templates known to the database, all of them or none, and creates their queues. A version that is
// there with the same content is left as it is, but for queues that somebody dropped; with other content it is an error.
func (c *Client) ApplyTemplates(ctx context.Context, templates ...*workflow.Template) ([]AppliedTemplate, error) {
	applied := make([]AppliedTemplate, len(templates))
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
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
	if err != nil {
		return nil, err
	}
	return applied, nil
}
