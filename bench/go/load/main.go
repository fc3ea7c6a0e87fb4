// Load drives an API server over HTTPS and prints what it measured, one JSON object a line.
//
// Each connection belongs to one worker, which sends its next request when it has the answer to the last. The standard
// library alone: the generator has to be cheaper than what it measures.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
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
	server      = flag.String("server", "", "address of the API server, https://HOST:PORT")
	authority   = flag.String("ca", "", "file with the certificate of the server's authority")
	token       = flag.String("token", "", "bearer token of an administrator")
	connections = flag.Int("connections", 16, "requests at a time")
	seconds     = flag.Float64("seconds", 5, "length of each phase")
	watchers    = flag.Int("watchers", 20, "watchers of the events phase")
	phases      = flag.String("phases", "create,get,list,update,patch,apply,create-pod,delete,events", "what to do, in order")
	custom      = flag.String("custom", "", "path of the collection of the create-custom phase")
	template    = flag.String("template", "", "file with the object of the create-custom phase; <name> stands for its name")
	namespace   = flag.String("namespace", "bench", "namespace to work in; made if it is not there")
)

// Result is one line of output.
type Result struct {
	Phase     string  `json:"phase"`
	Count     int     `json:"count"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	Megabytes float64 `json:"megabytes_per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Errors    int     `json:"errors"`
	Error     string  `json:"error,omitempty"`
}

// caller is one connection.
type caller struct {
	client *http.Client
	accept string
}

func newCaller(roots *x509.CertPool) *caller {
	return &caller{accept: asJSON, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots, InsecureSkipVerify: roots == nil},
		MaxConnsPerHost:    1,
		DisableCompression: true,
		TLSNextProto:       map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 on both servers
	}}}
}

func (c *caller) open(method, path, kind string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, *server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if *token != "" {
		request.Header.Set("Authorization", "Bearer "+*token)
	}
	request.Header.Set("Accept", c.accept)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	return c.client.Do(request)
}

// call sends a request and reads the answer; it returns the answer's size.
func (c *caller) call(method, path, kind string, body []byte) (int, error) {
	response, err := c.open(method, path, kind, body)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		return 0, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	size, err := io.Copy(io.Discard, response.Body)
	return int(size), err
}

func configMap(name, value string) []byte {
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench"}},"data":{"value":%q,"filler":%q}}`,
		name, value, strings.Repeat("x", 900)))
}

func pod(name string) []byte {
	var variables, containers []string
	for i := range 20 {
		variables = append(variables, fmt.Sprintf(`{"name":"VARIABLE_%d","value":"a value of some length, number %d"}`, i, i))
	}
	for i := range 2 {
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"registry.example/app:%d","env":[%s],"ports":[{"name":"p%d","containerPort":%d}],`+
			`"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},"readinessProbe":{"httpGet":{"path":"/ready","port":%d}}}`,
			i, i, strings.Join(variables, ","), i, 8080+i, 8080+i))
	}
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"bench"}},"spec":{"containers":[%s]}}`,
		name, strings.Join(containers, ",")))
}

// bench is what the phases share.
type bench struct {
	callers []*caller
	created atomic.Int64 // ConfigMaps c-0, c-1, ... that there are
	deleted atomic.Int64
	roots   *x509.CertPool
}

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	asMerge    = "application/merge-patch+json"
	asApply    = "application/apply-patch+yaml"
	listed     = 1000 // objects in the namespace that is listed
)

func in(namespace, resource string) string {
	return "/api/v1/namespaces/" + namespace + "/" + resource
}

// own is an object that no other worker touches at the same time.
func (b *bench) own(worker, turn int) string {
	count := int(b.created.Load())
	return fmt.Sprintf("%s/c-%d", in(*namespace, "configmaps"), (turn*len(b.callers)+worker)%count)
}

// run lets every worker repeat a request until the time is over.
func (b *bench) run(phase string, request func(c *caller, worker, turn int) (int, error)) Result {
	var wait sync.WaitGroup
	var mutex sync.Mutex
	var took []time.Duration
	var size int
	result := Result{Phase: phase}
	start := time.Now()
	end := start.Add(time.Duration(*seconds * float64(time.Second)))
	for worker, c := range b.callers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var mine []time.Duration
			var bytes int
			for turn := 0; time.Now().Before(end); turn++ {
				began := time.Now()
				n, err := request(c, worker, turn)
				if err == io.EOF {
					break // nothing left to do
				}
				if err != nil {
					mutex.Lock()
					result.Errors++
					result.Error = err.Error()
					mutex.Unlock()
					if result.Errors > 100 {
						break
					}
					continue
				}
				mine = append(mine, time.Since(began))
				bytes += n
			}
			mutex.Lock()
			defer mutex.Unlock()
			took = append(took, mine...)
			size += bytes
		}()
	}
	wait.Wait()
	result.Seconds = time.Since(start).Seconds()
	result.Megabytes = float64(size) / 1e6 / result.Seconds
	return result.with(took)
}

func (r Result) with(took []time.Duration) Result {
	slices.Sort(took)
	r.Count = len(took)
	r.PerSecond = float64(len(took)) / r.Seconds
	if len(took) > 0 {
		r.P50 = float64(took[len(took)/2].Microseconds()) / 1000
		r.P99 = float64(took[len(took)*99/100].Microseconds()) / 1000
	}
	return r
}

func (b *bench) phase(name string) Result {
	maps := in(*namespace, "configmaps")
	switch name {
	case "create":
		return b.run(name, func(c *caller, _, _ int) (int, error) {
			number := b.created.Add(1) - 1
			return c.call("POST", maps, asJSON, configMap(fmt.Sprintf("c-%d", number), "0"))
		})
	case "get":
		return b.run(name, func(c *caller, worker, turn int) (int, error) {
			return c.call("GET", b.own(worker, turn), "", nil)
		})
	case "list", "list-changing", "list-protobuf", "list-protobuf-changing":
		b.prepareList()
		if strings.HasSuffix(name, "changing") {
			defer b.change()()
		}
		accept := asJSON
		if strings.Contains(name, "protobuf") {
			accept = asProtobuf
		}
		return b.run(name, func(c *caller, _, _ int) (int, error) {
			as := caller{c.client, accept}
			return as.call("GET", in(*namespace+"-list", "configmaps"), "", nil)
		})
	case "update":
		return b.run(name, func(c *caller, worker, turn int) (int, error) {
			path := b.own(worker, turn)
			return c.call("PUT", path, asJSON, configMap(path[strings.LastIndex(path, "/")+1:], fmt.Sprint("update-", turn)))
		})
	case "patch":
		return b.run(name, func(c *caller, worker, turn int) (int, error) {
			return c.call("PATCH", b.own(worker, turn), asMerge, []byte(fmt.Sprintf(`{"data":{"value":"patch-%d"}}`, turn)))
		})
	case "apply":
		return b.run(name, func(c *caller, worker, turn int) (int, error) {
			path := b.own(worker, turn)
			return c.call("PATCH", path+"?fieldManager=bench&force=true", asApply,
				configMap(path[strings.LastIndex(path, "/")+1:], fmt.Sprint("apply-", turn)))
		})
	case "create-pod":
		var number atomic.Int64
		return b.run(name, func(c *caller, _, _ int) (int, error) {
			return c.call("POST", in(*namespace, "pods"), asJSON, pod(fmt.Sprintf("p-%d", number.Add(1))))
		})
	case "create-custom":
		object, err := os.ReadFile(*template)
		if err != nil {
			return Result{Phase: name, Errors: 1, Error: err.Error()}
		}
		var number atomic.Int64
		return b.run(name, func(c *caller, _, _ int) (int, error) {
			called := []byte(fmt.Sprintf("o-%d", number.Add(1)))
			return c.call("POST", *custom, asJSON, bytes.ReplaceAll(object, []byte("<name>"), called))
		})
	case "delete":
		return b.run(name, func(c *caller, _, _ int) (int, error) {
			number := b.deleted.Add(1) - 1
			if number >= b.created.Load() {
				return 0, io.EOF
			}
			return c.call("DELETE", fmt.Sprintf("%s/c-%d", maps, number), "", nil)
		})
	case "events":
		return b.events()
	case "soak":
		return b.soak()
	}
	return Result{Phase: name, Errors: 1, Error: "there is no such phase"}
}

func (b *bench) prepareList() {
	ensure(b.callers[0], *namespace+"-list")
	var wait sync.WaitGroup
	for worker, c := range b.callers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := worker; i < listed; i += len(b.callers) {
				c.call("POST", in(*namespace+"-list", "configmaps"), asJSON, configMap(fmt.Sprintf("l-%d", i), "0"))
			}
		}()
	}
	wait.Wait()
}

// change updates one of the listed objects every 10 ms until the returned function is called.
func (b *bench) change() func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c := newCaller(b.roots)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for turn := 0; ; turn++ {
			select {
			case <-done:
				return
			case <-tick.C:
				name := fmt.Sprintf("l-%d", turn%listed)
				c.call("PUT", in(*namespace+"-list", "configmaps")+"/"+name, asJSON, configMap(name, fmt.Sprint("change-", turn)))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// events measures from before a create is sent until each watcher has its event.
func (b *bench) events() Result {
	place := *namespace + "-events"
	result := Result{Phase: "events"}
	ensure(b.callers[0], place)
	var mutex sync.Mutex
	var took []time.Duration
	var wait sync.WaitGroup
	sent := sync.Map{}
	for range *watchers {
		c := newCaller(b.roots)
		response, err := c.open("GET", in(place, "configmaps")+"?watch=1&allowWatchBookmarks=true", "", nil)
		if err != nil {
			result.Errors, result.Error = 1, err.Error()
			return result
		}
		defer response.Body.Close()
		wait.Add(1)
		go func() {
			defer wait.Done()
			lines := bufio.NewReaderSize(response.Body, 1<<16)
			for {
				line, err := lines.ReadBytes('\n')
				now := time.Now()
				if err != nil {
					return
				}
				var event struct {
					Type   string
					Object struct{ Metadata struct{ Name string } }
				}
				json.Unmarshal(line, &event)
				if began, ok := sent.Load(event.Object.Metadata.Name); ok && event.Type == "ADDED" {
					mutex.Lock()
					took = append(took, now.Sub(began.(time.Time)))
					mutex.Unlock()
				} else if event.Object.Metadata.Name == "last" {
					return
				}
			}
		}()
	}
	start := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	count := 0
	for ; time.Since(start).Seconds() < *seconds; count++ {
		<-tick.C
		name := fmt.Sprintf("e-%d", count)
		sent.Store(name, time.Now())
		if _, err := b.callers[0].call("POST", in(place, "configmaps"), asJSON, configMap(name, "0")); err != nil {
			result.Errors++
			result.Error = err.Error()
		}
	}
	if _, err := b.callers[0].call("POST", in(place, "configmaps"), asJSON, configMap("last", "0")); err != nil {
		result.Errors, result.Error = result.Errors+1, err.Error()
		return result
	}
	wait.Wait()
	result.Seconds = time.Since(start).Seconds()
	result = result.with(took)
	if want := count * *watchers; result.Count != want {
		result.Errors++
		result.Error = fmt.Sprintf("%d events of %d came", result.Count, want)
	}
	return result
}

// ensure makes a namespace in which Pods can be made, too.
func ensure(c *caller, name string) {
	c.call("POST", "/api/v1/namespaces", asJSON, []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)))
	c.call("POST", in(name, "serviceaccounts"), asJSON, []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`))
}

func main() {
	flag.Parse()
	b := &bench{}
	if *authority != "" {
		text, err := os.ReadFile(*authority)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err == nil {
			text = decoded
		}
		b.roots = x509.NewCertPool()
		b.roots.AppendCertsFromPEM(text)
	}
	for range *connections {
		b.callers = append(b.callers, newCaller(b.roots))
	}
	ensure(b.callers[0], *namespace)
	out := json.NewEncoder(os.Stdout)
	for _, name := range strings.Split(*phases, ",") {
		out.Encode(b.phase(name))
	}
}
