package client_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// Types of the examples' own: what the task shop/fulfil_order takes and gives.
type (
	order struct {
		ID string `json:"order_id"`
	}
	receipt struct {
		Total string `json:"total"`
	}
)

var ctx = context.Background()

// A request whose key a task holds attaches to that task by default; here it is refused.
func ExampleClient_Submit() {
	c, err := client.New(client.Config{DatabaseURL: os.Getenv("PAWL_DATABASE_URL")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	id, err := c.Submit(ctx, client.Request{Template: "shop/fulfil_order", Input: order{ID: "S-1001"}, Key: "S-1001", OnDuplicate: messaging.Reject})
	if err != nil {
		log.Fatal(err) // it is wrong in itself, or the database could not be reached
	}
	_, err = c.Wait(ctx, id)
	var exists *client.TaskAlreadyExistsError
	if errors.As(err, &exists) {
		log.Printf("task %s does it already", exists.TaskID)
	}
}

func ExampleResult() {
	var c *client.Client // that client.New made
	id, err := c.Submit(ctx, client.Request{Template: "shop/fulfil_order", Input: order{ID: "S-1001"}})
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := client.Result[receipt](ctx, c, id)
	var failed *client.TaskFailedError
	switch {
	case errors.As(err, &failed):
		log.Printf("step %s failed: %v", failed.Step, err)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(receipt.Total)
	}
}

func ExampleClient_Wait() {
	var c *client.Client                                         // that client.New made
	id := uuid.MustParse("019a3f0c-0000-7000-8000-000000000001") // Submit returned it, perhaps to another process
	task, err := c.Wait(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Ref(), task.State, task.FinalizedAt.Sub(task.RequestedAt))
}

// The order and its task come into being together, or not at all.
func ExampleClient_SubmitTx() {
	var c *client.Client   // that client.New made
	var pool *pgxpool.Pool // of the program
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders (order_id) values ($1)", "S-1001"); err != nil {
			return err
		}
		_, err := c.SubmitTx(ctx, tx, client.Request{Template: "shop/fulfil_order", Input: order{ID: "S-1001"}, Key: "S-1001"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

//go:embed testdata/*.yaml
var files embed.FS

// A program applies the templates that it embeds when it starts: a version that is there with the same content is left as it
// is.
func ExampleClient_ApplyTemplates() {
	var c *client.Client // that client.New made
	templates, err := workflow.ParseFS(files, "testdata/*.yaml")
	if err != nil {
		log.Fatal(err) // names each problem with its file and line
	}
	applied, err := c.ApplyTemplates(ctx, templates...)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range applied {
		fmt.Println(t.Template, t.Created)
	}
}
