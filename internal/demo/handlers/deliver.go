package handlers

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/pawl-dev/pawl/worker"
)

type shipped struct {
	Tracking string `json:"tracking"`
}

type notified struct {
	Sent bool `json:"sent"`
}

// ship asks the carrier for a parcel. A repeated call carries the same token, and the carrier answers with the same parcel.
func (s *Shop) ship(ctx context.Context, step worker.Step[Order]) (shipped, error) {
	digest := sha256.Sum256([]byte(step.Token))
	tracking := fmt.Sprintf("PW%X", digest[:5])
	if err := s.call(ctx, "carrier", step.Token, step.Input.OrderID); err != nil {
		return shipped{}, err
	}
	if _, err := s.DB.Exec(ctx, "insert into shop.parcels (token, order_id, tracking) values ($1, $2, $3) on conflict do nothing",
		step.Token, step.Input.OrderID, tracking); err != nil {
		return shipped{}, fmt.Errorf("handing the parcel of order %s over: %w", step.Input.OrderID, err)
	}
	return shipped{Tracking: tracking}, s.work(ctx)
}

// notify writes to the customer, at most one message a token.
func (s *Shop) notify(ctx context.Context, step worker.Step[Order]) (notified, error) {
	var c charged
	if err := step.Dependency("charge", &c); err != nil {
		return notified{}, err
	}
	if err := s.call(ctx, "mail", step.Token, step.Input.OrderID); err != nil {
		return notified{}, err
	}
	body := fmt.Sprintf("Order %s: %d.%02d EUR paid, your parcel is on its way.", step.Input.OrderID, c.AmountCents/100, c.AmountCents%100)
	if _, err := s.DB.Exec(ctx, "insert into shop.messages (token, order_id, body) values ($1, $2, $3) on conflict do nothing",
		step.Token, step.Input.OrderID, body); err != nil {
		return notified{}, fmt.Errorf("writing to the customer of order %s: %w", step.Input.OrderID, err)
	}
	return notified{Sent: true}, s.work(ctx)
}

// call notes that a service heard us, repeated or not.
func (s *Shop) call(ctx context.Context, service, token, order string) error {
	_, err := s.DB.Exec(ctx, "insert into shop.calls (service, token, order_id) values ($1, $2, $3)", service, token, order)
	if err != nil {
		return fmt.Errorf("calling the %s for order %s: %w", service, order, err)
	}
	return nil
}
