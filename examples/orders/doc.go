// Package orders holds the example that the demo runs: three days of a shop's orders, its products, and the template
// that fulfils an order.
package orders
