package orders

import _ "embed" // the three files

// CSV is a file of orders: order_id, placed_at, customer_id, country, items ("SKU:quantity SKU:quantity"), shipping, payment.
//
//go:embed orders.csv
var CSV []byte

// Products is the file of products: sku, name, unit_price_cents, stock.
//
//go:embed products.csv
var Products []byte

// Template is shop/fulfil_order, in YAML.
//
//go:embed shop.yaml
var Template []byte
