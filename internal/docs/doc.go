// Package docs holds the documents against the code: links lead somewhere, and the commands, flags and make targets that
// they name exist.
package docs
