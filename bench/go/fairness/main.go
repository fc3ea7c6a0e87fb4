// Fairness plays the two tenants of bench/fairness.py: one floods an API server, the other asks for one object at a time.
//
//	fairness -role=flood -mix=get -connections=16   until its standard input is closed
//	fairness -role=probe -seconds=5                 prints the latencies that it saw
//
// Each prints one JSON object at its end. The standard library alone.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	role        = flag.String("role", "probe", "flood or probe")
	server      = flag.String("server", "", "address of the API server, https://HOST:PORT")
	authority   = flag.String("ca", "", "file with the certificate of the server's authority")
	token       = flag.String("token", "", "bearer token of the tenant")
	namespace   = flag.String("namespace", "", "namespace of the tenant")
	mix         = flag.String("mix", "get", "what the flood asks for")
	connections = flag.Int("connections", 4, "requests of the flood at a time")
	seconds     = flag.Float64("seconds", 5, "length of the probe")
	pause       = flag.Duration("pause", time.Millisecond, "between two requests of the probe")
	fresh       = flag.Bool("fresh", false, "a new connection for each request of the probe, as kubectl has")
	keys        = flag.Int("keys", 40000, "keys of a huge object")
)

// Result is what is printed.
type Result struct {
	Count  int            `json:"count"`
	P50    float64        `json:"p50_ms"`
	P99    float64        `json:"p99_ms"`
	Max    float64        `json:"max_ms"`
	Codes  map[string]int `json:"codes"`
	Second float64        `json:"per_second"`
}

func client(roots *x509.CertPool, fresh bool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		MaxConnsPerHost:    1,
		DisableCompression: true,
		DisableKeepAlives:  fresh,
		TLSNextProto:       map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 on both servers
	}}
}

type request struct {
	method, path, kind, accept string
	body                       []byte
}

func send(c *http.Client, r request) string {
	asked, err := http.NewRequest(r.method, *server+r.path, bytes.NewReader(r.body))
	if err != nil {
		return err.Error()
	}
	asked.Header.Set("Authorization", "Bearer "+*token)
	asked.Header.Set("Accept", "application/json")
	if r.accept != "" {
		asked.Header.Set("Accept", r.accept)
	}
	if r.kind != "" {
		asked.Header.Set("Content-Type", r.kind)
	}
	answer, err := c.Do(asked)
	if err != nil {
		return "error"
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return "error"
	}
	return fmt.Sprint(answer.StatusCode)
}

func huge(name string, turn int) []byte {
	var data strings.Builder
	for i := range *keys {
		if i > 0 {
			data.WriteByte(',')
		}
		fmt.Fprintf(&data, `"k%05d":"%d"`, i, turn%10)
	}
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":{%s}}`, name, *namespace, data.String()))
}

func operations(turn int) []byte {
	var all []string
	for i := range *keys / 4 {
		all = append(all, fmt.Sprintf(`{"op":"replace","path":"/data/k%05d","value":"%d"}`, i, turn%10))
	}
	return []byte("[" + strings.Join(all[:min(len(all), 10000)], ",") + "]")
}

const (
	tabular = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	merge   = "application/merge-patch+json"
)

// work gives the requests of one connection of the flood, by turns.
func work(worker int) func(turn int) request {
	maps := "/api/v1/namespaces/" + *namespace + "/configmaps"
	name := fmt.Sprintf("huge-%d", worker)
	bodies := [][]byte{}
	switch *mix {
	case "merge-patch", "strategic-patch", "apply", "update":
		bodies = [][]byte{huge(name, 1), huge(name, 2)}
	case "json-patch":
		bodies = [][]byte{operations(1), operations(2)}
	}
	patch := func(kind, query string) func(int) request {
		return func(turn int) request {
			return request{"PATCH", maps + "/" + name + query, kind, "", bodies[turn%2]}
		}
	}
	widgets := "/apis/fairness.example/v1/namespaces/" + *namespace + "/widgets?dryRun=All"
	widget := func(field, value string) func(int) request {
		body := []byte(fmt.Sprintf(`{"apiVersion":"fairness.example/v1","kind":"Widget","metadata":{"name":"w"},%q:%s}`, field, value))
		return func(int) request { return request{"POST", widgets, "application/json", "", body} }
	}
	switch *mix {
	case "get", "handshake", "fresh":
		return func(int) request { return request{"GET", maps + "/small", "", "", nil} }
	case "list":
		return func(int) request { return request{"GET", maps + "?labelSelector=size%3Dsmall", "", "", nil} }
	case "list-large":
		return func(int) request { return request{"GET", maps + "?labelSelector=size%3Dlarge", "", "", nil} }
	case "table":
		return func(int) request { return request{"GET", maps + "?labelSelector=size%3Dsmall", "", tabular, nil} }
	case "yaml":
		return func(int) request {
			return request{"GET", maps + "?labelSelector=size%3Dsmall", "", "application/yaml", nil}
		}
	case "merge-patch":
		return patch(merge, "")
	case "strategic-patch":
		return patch("application/strategic-merge-patch+json", "")
	case "json-patch":
		return patch("application/json-patch+json", "")
	case "apply":
		return patch("application/apply-patch+yaml", "?fieldManager=fairness&force=true")
	case "update":
		return func(turn int) request {
			return request{"PUT", maps + "/" + name, "application/json", "", bodies[turn%2]}
		}
	case "create":
		body := func(turn int) []byte {
			return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big-%d"},"data":{"value":%q}}`, worker, strings.Repeat("x", 900_000)))
		}
		return func(turn int) request {
			if turn%2 == 0 {
				return request{"POST", maps, "application/json", "", body(turn)}
			}
			return request{"DELETE", fmt.Sprintf("%s/big-%d", maps, worker), "", "", nil}
		}
	case "write":
		return func(turn int) request {
			return request{"PATCH", maps + "/small", merge, "", []byte(fmt.Sprintf(`{"data":{"turn":"%d"}}`, turn))}
		}
	case "regular-expression":
		return widget("text", `"`+strings.Repeat("a", 2_000_000)+`"`)
	case "cel":
		numbers := make([]string, 1000)
		for i := range numbers {
			numbers[i] = fmt.Sprint(i)
		}
		return widget("numbers", "["+strings.Join(numbers, ",")+"]")
	}
	panic("no mix " + *mix)
}

func result(latencies []float64, codes map[string]int, elapsed float64) Result {
	slices.Sort(latencies)
	at := func(share float64) float64 {
		if len(latencies) == 0 {
			return 0
		}
		return latencies[min(len(latencies)-1, int(share*float64(len(latencies))))]
	}
	return Result{len(latencies), at(0.5), at(0.99), at(1), codes, float64(len(latencies)) / elapsed}
}

func flood(roots *x509.CertPool) Result {
	var (
		over  atomic.Bool
		lock  sync.Mutex
		group sync.WaitGroup
		all   []float64
	)
	codes := map[string]int{}
	began := time.Now()
	for worker := range *connections {
		group.Add(1)
		go func() {
			defer group.Done()
			c, next := client(roots, *mix == "handshake" || *mix == "fresh"), work(worker)
			for turn := 0; !over.Load(); turn++ {
				r := next(turn)
				sent := time.Now()
				code := send(c, r)
				lock.Lock()
				codes[code]++
				all = append(all, float64(time.Since(sent).Microseconds())/1000)
				lock.Unlock()
				if code == "error" {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	over.Store(true)
	elapsed := time.Since(began).Seconds()
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
	lock.Lock()
	defer lock.Unlock()
	return result(slices.Clone(all), codes, elapsed)
}

func probe(roots *x509.CertPool) Result {
	c := client(roots, *fresh)
	codes := map[string]int{}
	var latencies []float64
	r := request{"GET", "/api/v1/namespaces/" + *namespace + "/configmaps/small", "", "", nil}
	began := time.Now()
	for time.Since(began).Seconds() < *seconds || len(latencies) < 5 {
		sent := time.Now()
		codes[send(c, r)]++
		latencies = append(latencies, float64(time.Since(sent).Microseconds())/1000)
		time.Sleep(*pause)
	}
	return result(latencies, codes, time.Since(began).Seconds())
}

func main() {
	flag.Parse()
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(*authority)
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		fmt.Fprintln(os.Stderr, "no certificate in", *authority, err)
		os.Exit(1)
	}
	var found Result
	if *role == "flood" {
		found = flood(roots)
	} else {
		found = probe(roots)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(1)
	}
}
