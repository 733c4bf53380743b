package handlers

import (
	"context"

	"github.com/pawl-dev/pawl/worker"
)

// tariff is the step's config in the template.
type tariff struct {
	VATPercent            map[string]int64 `json:"vat_percent"`
	ShippingCents         map[string]int64 `json:"shipping_cents"`
	FreeShippingFromCents int64            `json:"free_shipping_from_cents"`
}

type priced struct {
	ItemsCents    int64 `json:"items_cents"`
	ShippingCents int64 `json:"shipping_cents"`
	VATCents      int64 `json:"vat_cents"` // contained in the total
	TotalCents    int64 `json:"total_cents"`
}

// price has no effects: repeating it is harmless by itself.
func (s *Shop) price(ctx context.Context, step worker.Step[Order]) (priced, error) {
	var v validated
	var t tariff
	if err := step.Dependency("validate", &v); err != nil {
		return priced{}, err
	}
	if err := step.Config(&t); err != nil {
		return priced{}, err
	}
	return t.total(step.Input, v.Lines), s.work(ctx)
}

func (t tariff) total(o Order, lines []line) priced {
	var p priced
	for _, line := range lines {
		p.ItemsCents += int64(line.Quantity) * line.UnitPriceCents
	}
	if o.Shipping == "express" || p.ItemsCents < t.FreeShippingFromCents {
		p.ShippingCents = t.ShippingCents[o.Shipping]
	}
	p.TotalCents = p.ItemsCents + p.ShippingCents
	rate := t.VATPercent[o.Country]
	p.VATCents = (p.TotalCents*rate + (100+rate)/2) / (100 + rate)
	return p
}
