package invoices

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/worker"
)

// Billing does the work of the module.
type Billing struct {
	DB *pgxpool.Pool
	// Compute makes the total of a regenerated invoice, in cents; slow, and nothing that must not be repeated. Nil: the
	// total stays.
	Compute func(ctx context.Context, invoice int64) (int64, error)
	// Tell writes to the customer. Nil: nobody is told.
	Tell func(ctx context.Context, invoice int64, token string) error
}

// Action is the input of the templates.
type Action struct {
	InvoiceID   int64 `json:"invoice_id"`
	AmountCents int64 `json:"amount_cents"`
}

// Outcome is what an action leads to: the invoice that counts now.
type Outcome struct {
	InvoiceID int64 `json:"invoice_id"`
}

// Register makes the worker handle the steps of namespace billing.
func (b *Billing) Register(w *worker.Worker) {
	worker.Handle(w, "billing.regenerate", b.Regenerate)
	worker.Handle(w, "billing.apply_payment", b.ApplyPayment)
	worker.Handle(w, "billing.tell_customer", b.TellCustomer)
}

// Regenerate deletes the invoice and clones it under its number. The engine has moved it from sent to regenerating, and
// moves it to replaced when the transaction commits; nobody else gets to either action meanwhile.
func (b *Billing) Regenerate(ctx context.Context, step worker.Step[Action]) (Outcome, error) {
	var clone int64
	total, err := b.compute(ctx, step.Input.InvoiceID)
	if err != nil {
		return Outcome{}, fmt.Errorf("computing invoice %d anew: %w", step.Input.InvoiceID, err)
	}
	err = pgx.BeginFunc(ctx, b.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update invoices set deleted_at = now() where invoice_id = $1`, step.Input.InvoiceID); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `insert into invoices (number, status, total_cents, replaces)
			select number, 'sent', coalesce($2, total_cents), invoice_id from invoices where invoice_id = $1
			returning invoice_id`, step.Input.InvoiceID, total).Scan(&clone)
		if err != nil {
			return err
		}
		return step.CompleteTx(ctx, tx, Outcome{InvoiceID: clone})
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("regenerating invoice %d: %w", step.Input.InvoiceID, err)
	}
	return Outcome{}, nil // the step is complete already
}

func (b *Billing) compute(ctx context.Context, invoice int64) (*int64, error) {
	if b.Compute == nil {
		return nil, nil
	}
	total, err := b.Compute(ctx, invoice)
	return &total, err
}

// ApplyPayment books the payment; the invoice is paid when the transaction commits.
func (b *Billing) ApplyPayment(ctx context.Context, step worker.Step[Action]) (Outcome, error) {
	err := pgx.BeginFunc(ctx, b.DB, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into payments (invoice_id, amount_cents) values ($1, $2)`, step.Input.InvoiceID, step.Input.AmountCents)
		if err != nil {
			return err
		}
		return step.CompleteTx(ctx, tx, Outcome{InvoiceID: step.Input.InvoiceID})
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("applying a payment to invoice %d: %w", step.Input.InvoiceID, err)
	}
	return Outcome{}, nil
}

// TellCustomer writes to the customer, after the commit: it holds no claim and may be repeated, with the same token.
func (b *Billing) TellCustomer(ctx context.Context, step worker.Step[Action]) (Outcome, error) {
	if b.Tell == nil {
		return Outcome{InvoiceID: step.Input.InvoiceID}, nil
	}
	if err := b.Tell(ctx, step.Input.InvoiceID, step.Token); err != nil {
		return Outcome{}, fmt.Errorf("telling the customer of invoice %d: %w", step.Input.InvoiceID, err)
	}
	return Outcome{InvoiceID: step.Input.InvoiceID}, nil
}
