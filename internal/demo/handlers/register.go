package handlers

import "github.com/pawl-dev/pawl/worker"

// Register adds the six handlers of shop/fulfil_order to a worker.
func Register(w *worker.Worker, shop *Shop) {
	worker.Handle(w, "shop.validate", shop.validate)
	worker.Handle(w, "shop.reserve_stock", shop.reserve)
	worker.Handle(w, "shop.price", shop.price)
	worker.Handle(w, "shop.charge", shop.charge)
	worker.Handle(w, "shop.ship", shop.ship)
	worker.Handle(w, "shop.notify", shop.notify)
}
