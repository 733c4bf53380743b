// Package handlers is the demo's shop: the six handlers of shop/fulfil_order and the tables they write.
//
// It shows the three ways to be right when a step is delivered twice. charge commits its row together with the step's
// completion (exactly once). reserve, ship and notify write under the step's token, as one would send it to a service of
// others in an idempotency header. validate and price have no effects.
package handlers
