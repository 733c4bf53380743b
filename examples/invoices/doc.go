// Package invoices shows entity claims on the two actions of billing that must not run twice at once and cannot simply be
// repeated: regenerating an invoice that was sent (the original is deleted, a clone takes its number) and applying a
// payment to it. Both write in the transaction that completes their step, so that what they write and the move of the
// invoice's row are one: a crash leaves nothing behind but the claim, which the module's janitor releases.
//
// Telling the customer is a step of its own, after the claim: what may follow the commit does not belong under it.
//
// invoices.sql makes the tables and registers the invoice as an entity; billing.yaml holds the templates. A payment may
// reach an invoice that is sent or overdue. One claim state reverts to one state, so there are two templates for it, each
// with a claim state of its own.
package invoices
