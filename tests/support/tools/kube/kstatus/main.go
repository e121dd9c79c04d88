// Kstatus tells what Flux and Helm think of objects, by the library that both use. Each line on standard input, one
// object in JSON, is answered by one line: {"status": "Current", "message": "..."}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const longestLine = 16 << 20

type answer struct {
	Status  status.Status `json:"status"`
	Message string        `json:"message"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(objects io.Reader, answers io.Writer) error {
	lines := bufio.NewScanner(objects)
	lines.Buffer(nil, longestLine)
	encoder := json.NewEncoder(answers)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			return err
		}
		result, err := status.Compute(object)
		if err != nil {
			return err
		}
		if err := encoder.Encode(answer{result.Status, result.Message}); err != nil {
			return err
		}
	}
	return lines.Err()
}
