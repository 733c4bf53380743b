package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/examples/orders"
	"github.com/pawl-dev/pawl/internal/demo/handlers"
	"github.com/pawl-dev/pawl/workflow"
)

func TestExampleFilesAreSound(t *testing.T) {
	t.Parallel()
	list, err := readOrders("orders.csv", orders.CSV)
	require.NoError(t, err)
	require.Len(t, list, 300)
	products, err := Products("")
	require.NoError(t, err)
	known, left := map[string]bool{}, map[string]int64{}
	for _, p := range products {
		known[p.SKU], left[p.SKU] = true, p.Stock
	}
	for _, o := range list {
		for _, item := range o.Items {
			require.True(t, known[item.SKU], "%s of %s", item.SKU, o.OrderID)
			left[item.SKU] -= int64(item.Quantity)
			require.GreaterOrEqual(t, left[item.SKU], int64(0), "stock of %s", item.SKU)
		}
	}
	templates, err := workflow.ParseTemplates("shop.yaml", orders.Template)
	require.NoError(t, err)
	require.Equal(t, template+"@1", templates[0].Ref())
	var names []string
	for _, step := range templates[0].Steps {
		names = append(names, step.Name)
		require.Contains(t, handlers.Queues, step.Queue)
	}
	require.ElementsMatch(t, stepNames, names)
}

func TestBadOrdersNameTheirLine(t *testing.T) {
	t.Parallel()
	const heading = "order_id,placed_at,customer_id,country,items,shipping,payment\n"
	for says, text := range map[string]string{
		"column shipping is missing":         "order_id,placed_at,customer_id,country,items,payment\n",
		"no heading":                         "",
		"no order":                           heading,
		`line 2: items has "A"`:              heading + "1,,C,DE,A,standard,card\n",
		`line 3: items has "A:0"`:            heading + "1,,C,DE,A:1,standard,card\n2,,C,DE,A:0,standard,card\n",
		"line 2: items is empty":             heading + "1,,C,DE,,standard,card\n",
		"line 2: order_id is empty":          heading + ",,C,DE,A:1,standard,card\n",
		"order 1 stands in line 2 already":   heading + "1,,C,DE,A:1,standard,card\n1,,C,DE,A:1,standard,card\n",
		"record on line 2: wrong number of ": heading + "1,2\n",
	} {
		_, err := readOrders("mine.csv", []byte(text))
		require.ErrorContains(t, err, "reading orders from mine.csv: ")
		require.ErrorContains(t, err, says)
	}
	list, err := readOrders("mine.csv", []byte("\xef\xbb\xbfnote,"+heading+"x,1,,C,DE,A:1 B:2,standard,card\n"))
	require.NoError(t, err, "columns in any order, a byte order mark")
	require.Equal(t, []handlers.Item{{SKU: "A", Quantity: 1}, {SKU: "B", Quantity: 2}}, list[0].Items)
}

func TestATenthIsSentTwiceByKeyAndByID(t *testing.T) {
	t.Parallel()
	list, err := readOrders("orders.csv", orders.CSV)
	require.NoError(t, err)
	requests := plan(list)
	require.Len(t, requests, 330)
	require.Equal(t, 30, repeated(requests))
	sent := map[string]int{}
	byID := 0
	for _, r := range requests {
		require.Equal(t, r.again, sent[r.Input.OrderID] == 1, "a repetition comes after its first")
		require.NotEqual(t, r.Key == "", r.RequestID == nil, "a key or an id")
		sent[r.Input.OrderID]++
		if r.again && r.RequestID != nil {
			byID++
		}
	}
	require.Equal(t, 15, byID)
	require.Len(t, sent, 300)
	require.Equal(t, 1, repeated(plan(list[:6])), "the last orders are repeated, too")
}
