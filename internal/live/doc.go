// Package live draws a few lines on a terminal again and again, in place.
package live
