module github.com/pawl-dev/pawl

go 1.26
