// Package nearest finds the name that somebody may have meant by a misspelt one.
package nearest
