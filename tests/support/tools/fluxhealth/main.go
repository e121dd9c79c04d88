// Fluxhealth tells what Flux thinks of objects of a kind that has healthCheckExprs, by Flux's own evaluator. The
// argument is one element of healthCheckExprs in JSON; each line on standard input, one object in JSON, is answered by
// one line, its status.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const longestLine = 16 << 20

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fluxhealth:", err)
		os.Exit(1)
	}
}

func run(arguments []string, objects io.Reader, answers io.Writer) error {
	if len(arguments) != 1 {
		return errors.New("give one element of healthCheckExprs in JSON")
	}
	check := &kustomize.CustomHealthCheck{}
	if err := json.Unmarshal([]byte(arguments[0]), check); err != nil {
		return err
	}
	evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(objects)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			return err
		}
		result, err := evaluator.Evaluate(context.Background(), object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(answers, result.Status); err != nil {
			return err
		}
	}
	return lines.Err()
}
