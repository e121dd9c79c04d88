// Crdcheck answers what an API server would say to a CustomResourceDefinition and to objects of it, by running the
// API server's own code without the server: the create strategies of both kinds, and between them pruning and
// defaulting in the order of the request path.
//
//	crdcheck CRD.yaml
//
// The first line on standard output is the verdict on the definition. Then each line read from standard input, one
// object in JSON, is answered by one line. Every answer is JSON: {"errors": [...], "unknown": [...], "object": {...}},
// where unknown holds the fields that were pruned and object what would have been stored.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const longestLine = 16 << 20

type verdict struct {
	Errors  []problem      `json:"errors"`
	Unknown []string       `json:"unknown,omitempty"`
	Object  map[string]any `json:"object,omitempty"`
}

type problem struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdcheck CRD.yaml < objects.jsonl")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "crdcheck:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	definition, errs, err := create(text)
	if err != nil {
		return err
	}
	answers := json.NewEncoder(os.Stdout)
	if err := answers.Encode(verdict{Errors: problems(errs)}); err != nil || len(errs) > 0 {
		return err
	}
	kind, err := serve(definition)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		answer, err := kind.create(lines.Bytes())
		if err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func problems(errs field.ErrorList) []problem {
	found := make([]problem, 0, len(errs))
	for _, err := range errs {
		found = append(found, problem{Type: string(err.Type), Path: err.Field, Message: err.ErrorBody()})
	}
	return found
}
