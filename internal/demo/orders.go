package demo

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/demo/handlers"
)

var (
	orderColumns   = []string{"order_id", "placed_at", "customer_id", "country", "items", "shipping", "payment"}
	productColumns = []string{"sku", "name", "unit_price_cents", "stock"}
)

// readOrders reads a file of orders; its error names the line.
func readOrders(file string, data []byte) ([]handlers.Order, error) {
	var orders []handlers.Order
	seen := map[string]int{}
	err := readCSV(data, orderColumns, func(line int, field map[string]string) error {
		o := handlers.Order{
			OrderID: field["order_id"], PlacedAt: field["placed_at"], CustomerID: field["customer_id"],
			Country: field["country"], Shipping: field["shipping"], Payment: field["payment"],
		}
		if o.OrderID == "" {
			return errors.New("order_id is empty")
		}
		if first, twice := seen[o.OrderID]; twice {
			return fmt.Errorf("order %s stands in line %d already", o.OrderID, first)
		}
		seen[o.OrderID] = line
		var err error
		o.Items, err = parseItems(field["items"])
		orders = append(orders, o)
		return err
	})
	if err == nil && len(orders) == 0 {
		err = errors.New("it holds no order")
	}
	if err != nil {
		return nil, fmt.Errorf("reading orders from %s: %w", file, err)
	}
	return orders, nil
}

// parseItems reads "SKU:quantity SKU:quantity".
func parseItems(s string) ([]handlers.Item, error) {
	var items []handlers.Item
	for _, word := range strings.Fields(s) {
		sku, count, ok := strings.Cut(word, ":")
		quantity, err := strconv.Atoi(count)
		if !ok || err != nil || sku == "" || quantity < 1 {
			return nil, fmt.Errorf("items has %q: write SKU:QUANTITY, separated by spaces", word)
		}
		items = append(items, handlers.Item{SKU: sku, Quantity: quantity})
	}
	if len(items) == 0 {
		return nil, errors.New("items is empty")
	}
	return items, nil
}

func readProducts(file string, data []byte) ([]handlers.Product, error) {
	var products []handlers.Product
	err := readCSV(data, productColumns, func(_ int, field map[string]string) error {
		price, err := strconv.ParseInt(field["unit_price_cents"], 10, 64)
		if err != nil || price < 0 {
			return fmt.Errorf("unit_price_cents is %q", field["unit_price_cents"])
		}
		stock, err := strconv.ParseInt(field["stock"], 10, 64)
		if err != nil || stock < 0 {
			return fmt.Errorf("stock is %q", field["stock"])
		}
		products = append(products, handlers.Product{SKU: field["sku"], Name: field["name"], UnitPriceCents: price, Stock: stock})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading products from %s: %w", file, err)
	}
	return products, nil
}

// readCSV calls row for each line with its fields by column; columns may stand in any order, others are ignored.
func readCSV(data []byte, columns []string, row func(line int, field map[string]string) error) error {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	heading, err := r.Read()
	if err != nil {
		return fmt.Errorf("it has no heading; the columns are %s", strings.Join(columns, ", "))
	}
	at := map[string]int{}
	for i, name := range heading {
		at[strings.TrimSpace(name)] = i
	}
	for _, name := range columns {
		if _, ok := at[name]; !ok {
			return fmt.Errorf("column %s is missing; the columns are %s", name, strings.Join(columns, ", "))
		}
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		field := make(map[string]string, len(columns))
		for _, name := range columns {
			field[name] = strings.TrimSpace(record[at[name]])
		}
		if err := row(line, field); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}
