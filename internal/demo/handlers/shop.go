package handlers

import (
	"context"
	_ "embed" // schema.sql
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Queues that the handlers are served from. Those of mails and parcels have workers in other languages, too.
var Queues = []string{"shop_orders", "shop_pricing", "shop_mails", "shop_parcels"}

//go:embed schema.sql
var schema string

// Order is the input of shop/fulfil_order.
type Order struct {
	OrderID    string `json:"order_id"`
	PlacedAt   string `json:"placed_at"`
	CustomerID string `json:"customer_id"`
	Country    string `json:"country"`
	Shipping   string `json:"shipping"`
	Payment    string `json:"payment"`
	Items      []Item `json:"items"`
}

// Item is one line of an order.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// Product of the shop.
type Product struct {
	SKU, Name             string
	UnitPriceCents, Stock int64
}

// SetUp makes the shop's tables and fills in the products that are not there yet.
func SetUp(ctx context.Context, conn *pgx.Conn, products []Product) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, schema); err != nil {
			return fmt.Errorf("making the shop's tables: %w", err)
		}
		for _, p := range products {
			if _, err := tx.Exec(ctx, `insert into shop.products (sku, name, unit_price_cents, stock) values ($1, $2, $3, $4)
				on conflict do nothing`, p.SKU, p.Name, p.UnitPriceCents, p.Stock); err != nil {
				return fmt.Errorf("adding product %s: %w", p.SKU, err)
			}
		}
		return nil
	})
}

// Shop is what the handlers share.
type Shop struct {
	// DB holds the shop's tables; charge needs it to be the database of the engine.
	DB *pgxpool.Pool
	// Latency of the services that the handlers would call: each step takes from one to three times this. Default: none.
	Latency time.Duration
}

// work takes the time that a call to somebody else's service would.
func (s *Shop) work(ctx context.Context) error {
	if s.Latency <= 0 {
		return nil
	}
	timer := time.NewTimer(s.Latency + rand.N(2*s.Latency))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
