module headgate.dev/tests/support/tools/pause

go 1.26.0
