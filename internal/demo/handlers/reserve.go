package handlers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/worker"
)

type reserved struct {
	Lines int `json:"lines"`
}

// reserve writes under the step's token in a transaction of its own: a second delivery finds its rows there and adds none.
func (s *Shop) reserve(ctx context.Context, step worker.Step[Order]) (reserved, error) {
	var v validated
	if err := step.Dependency("validate", &v); err != nil {
		return reserved{}, err
	}
	quantities := map[string]int{} // an order may name a product twice
	for _, line := range v.Lines {
		quantities[line.SKU] += line.Quantity
	}
	err := pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		for sku, quantity := range quantities {
			if _, err := tx.Exec(ctx, `insert into shop.reservations (token, order_id, sku, quantity) values ($1, $2, $3, $4)
				on conflict do nothing`, step.Token, step.Input.OrderID, sku, quantity); err != nil {
				return fmt.Errorf("reserving %s for order %s: %w", sku, step.Input.OrderID, err)
			}
		}
		return nil
	})
	if err != nil {
		return reserved{}, err
	}
	return reserved{Lines: len(quantities)}, s.work(ctx)
}
