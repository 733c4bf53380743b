package handlers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTotalAddsItemsAndShippingAndContainsVAT(t *testing.T) {
	t.Parallel()
	tariff := tariff{
		VATPercent:    map[string]int64{"DE": 19},
		ShippingCents: map[string]int64{"standard": 490, "express": 1290, "pickup": 0}, FreeShippingFromCents: 6000,
	}
	small := []line{{SKU: "A", Quantity: 2, UnitPriceCents: 1000}}
	large := []line{{SKU: "B", Quantity: 1, UnitPriceCents: 6400}}
	for name, test := range map[string]struct {
		order Order
		lines []line
		want  priced
	}{
		"standard":             {Order{Country: "DE", Shipping: "standard"}, small, priced{2000, 490, 398, 2490}},
		"free from 60":         {Order{Country: "DE", Shipping: "standard"}, large, priced{6400, 0, 1022, 6400}},
		"express is never":     {Order{Country: "DE", Shipping: "express"}, large, priced{6400, 1290, 1228, 7690}},
		"pickup, unknown rate": {Order{Country: "XX", Shipping: "pickup"}, small, priced{2000, 0, 0, 2000}},
	} {
		require.Equal(t, test.want, tariff.total(test.order, test.lines), name)
	}
}
