// Command templates parses and executes a template with Go's text/template, and prints the microseconds of CPU time of both.
//
//	templates TEMPLATE DATA ROUNDS
package main

import (
	"encoding/json"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"
)

// cpuTime is the CPU time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	raw, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var data any
	if err := json.Unmarshal(raw, &data); err != nil {
		log.Fatal(err)
	}
	rounds, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	var parsed *template.Template
	start := cpuTime()
	for range rounds {
		if parsed, err = template.New("page").Parse(string(text)); err != nil {
			log.Fatal(err)
		}
	}
	parsing := cpuTime() - start
	var output strings.Builder
	start = cpuTime()
	for range rounds {
		output.Reset()
		if err := parsed.Execute(&output, data); err != nil {
			log.Fatal(err)
		}
	}
	executing := cpuTime() - start
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"parse":  float64(parsing.Microseconds()) / float64(rounds),
		"render": float64(executing.Microseconds()) / float64(rounds),
		"output": output.String(),
	})
}
