package workertest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/worker/workertest"
)

type cart struct {
	Customer string `json:"customer"`
}

type receipt struct {
	Charged int    `json:"charged"`
	Key     string `json:"key"`
}

// charge is the handler under test.
func charge(_ context.Context, step worker.Step[cart]) (receipt, error) {
	var price struct{ Cents int }
	if err := step.Dependency("price", &price); err != nil {
		return receipt{}, err
	}
	if step.Input.Customer == "mallory" {
		return receipt{}, worker.Rejected(worker.Error{Type: "fraud", Err: errors.New("not this customer")})
	}
	return receipt{Charged: price.Cents, Key: step.Token}, nil
}

func Example() {
	message := workertest.Message{
		Input:        cart{Customer: "ada"},
		Dependencies: map[string]any{"price": map[string]int{"cents": 990}},
		Token:        "order-1/charge",
	}
	paid, end := workertest.Run(context.Background(), charge, message)
	fmt.Println(end.Status, paid.Charged, paid.Key)

	message.Input = cart{Customer: "mallory"}
	_, end = workertest.Run(context.Background(), charge, message)
	fmt.Println(end.Status, end.Error.Type, end.Error.Message)

	// Output:
	// complete 990 order-1/charge
	// rejected fraud not this customer
}
