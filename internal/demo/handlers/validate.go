package handlers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/worker"
)

// validated is what validate finds: the order's lines with the prices of now.
type validated struct {
	Lines []line `json:"lines"`
}

type line struct {
	SKU            string `json:"sku"`
	Quantity       int    `json:"quantity"`
	UnitPriceCents int64  `json:"unit_price_cents"`
}

// validate looks up every product; one that the shop does not have is refused, and no retry would help.
func (s *Shop) validate(ctx context.Context, step worker.Step[Order]) (validated, error) {
	if err := s.work(ctx); err != nil {
		return validated{}, err
	}
	rows, err := s.DB.Query(ctx, "select sku, unit_price_cents from shop.products where sku = any ($1)", skus(step.Input.Items))
	if err != nil {
		return validated{}, fmt.Errorf("looking up the products of order %s: %w", step.Input.OrderID, err)
	}
	type known struct {
		SKU            string
		UnitPriceCents int64
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[known])
	if err != nil {
		return validated{}, fmt.Errorf("looking up the products of order %s: %w", step.Input.OrderID, err)
	}
	prices := map[string]int64{}
	for _, product := range found {
		prices[product.SKU] = product.UnitPriceCents
	}
	var v validated
	for _, item := range step.Input.Items {
		price, ok := prices[item.SKU]
		if !ok {
			return validated{}, worker.Rejected(worker.Error{Type: "unknown_product", Err: fmt.Errorf("the shop has no product %s", item.SKU)})
		}
		v.Lines = append(v.Lines, line{SKU: item.SKU, Quantity: item.Quantity, UnitPriceCents: price})
	}
	return v, nil
}

func skus(items []Item) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.SKU
	}
	return names
}
