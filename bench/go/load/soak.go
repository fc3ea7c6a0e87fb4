package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"time"
)

// seen is one event, as a watcher had it.
type seen struct {
	kind    string
	name    string
	version uint64
}

// soak lets every connection write while many watch, and then compares what the watchers saw, event by event, with what
// the writers were told.
func (b *bench) soak() Result {
	place := *namespace + "-soak"
	result := Result{Phase: "soak"}
	ensure(b.callers[0], place)
	maps := in(place, "configmaps")
	fail := func(format string, values ...any) {
		result.Errors++
		result.Error = fmt.Sprintf(format, values...)
	}
	streams := make([][]seen, *watchers)
	var watching sync.WaitGroup
	for i := range streams {
		response, err := newCaller(b.roots).open("GET", maps+"?watch=1&timeoutSeconds=3600", "", nil)
		if err != nil {
			fail("%v", err)
			return result
		}
		defer response.Body.Close()
		watching.Add(1)
		go func() {
			defer watching.Done()
			streams[i] = collect(response)
		}()
	}

	var mutex sync.Mutex
	var told []seen
	var deleted int
	start := time.Now()
	end := start.Add(time.Duration(*seconds * float64(time.Second)))
	var writing sync.WaitGroup
	for worker, c := range b.callers {
		writing.Add(1)
		go func() {
			defer writing.Done()
			var mine []seen
			gone := 0
			for turn := 0; time.Now().Before(end); turn++ {
				name := fmt.Sprintf("s-%d-%d", worker, turn)
				for _, step := range []struct{ kind, method, path, as, body string }{
					{"ADDED", "POST", maps, asJSON, string(configMap(name, "0"))},
					{"MODIFIED", "PUT", maps + "/" + name, asJSON, string(configMap(name, "1"))},
					{"MODIFIED", "PATCH", maps + "/" + name, asMerge, `{"data":{"value":"2"}}`},
					{"DELETED", "DELETE", maps + "/" + name, "", ""},
				} {
					version, err := c.write(step.method, step.path, step.as, []byte(step.body))
					if err != nil {
						mutex.Lock()
						fail("%v", err)
						mutex.Unlock()
						return
					}
					if step.kind == "DELETED" {
						gone++
					} else {
						mine = append(mine, seen{step.kind, name, version})
					}
				}
			}
			mutex.Lock()
			defer mutex.Unlock()
			told = append(told, mine...)
			deleted += gone
		}()
	}
	writing.Wait()
	if _, err := b.callers[0].call("POST", maps, asJSON, configMap("last", "0")); err != nil {
		fail("%v", err)
		return result
	}
	watching.Wait()
	result.Seconds = time.Since(start).Seconds()
	result.Count = len(told) + deleted
	result.PerSecond = float64(result.Count) / result.Seconds
	if problem := compare(streams, told, deleted); problem != "" {
		fail("%s", problem)
	}
	return result
}

// write sends a write and returns the version that the answer names, 0 if it names none.
func (c *caller) write(method, path, kind string, body []byte) (uint64, error) {
	response, err := c.open(method, path, kind, body)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode >= 300 {
		return 0, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, data)
	}
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return 0, err
	}
	version, _ := strconv.ParseUint(object.Metadata.ResourceVersion, 10, 64)
	return version, nil
}

// collect reads a watch until the object called "last" comes, or the stream ends.
func collect(response *http.Response) []seen {
	var events []seen
	lines := bufio.NewReaderSize(response.Body, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events
		}
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if json.Unmarshal(line, &event) != nil || event.Object.Metadata.Name == "last" {
			return events
		}
		if event.Object.Metadata.Name[:2] != "s-" {
			continue // what every namespace has
		}
		version, _ := strconv.ParseUint(event.Object.Metadata.ResourceVersion, 10, 64)
		events = append(events, seen{event.Type, event.Object.Metadata.Name, version})
	}
}

// compare says what is wrong with what the watchers saw, "" if nothing is.
func compare(streams [][]seen, told []seen, deleted int) string {
	sort.Slice(told, func(i, j int) bool { return told[i].version < told[j].version })
	for watcher, events := range streams {
		var written []seen
		gone := map[string]bool{}
		last := uint64(0)
		for _, event := range events {
			if event.version <= last {
				return fmt.Sprintf("watcher %d: %v came after version %d", watcher, event, last)
			}
			last = event.version
			if event.kind == "DELETED" {
				gone[event.name] = true
			} else {
				written = append(written, event)
			}
		}
		if len(gone) != deleted {
			return fmt.Sprintf("watcher %d: saw %d of %d deletions", watcher, len(gone), deleted)
		}
		if len(written) != len(told) {
			return fmt.Sprintf("watcher %d: saw %d of %d writes", watcher, len(written), len(told))
		}
		for i := range told {
			if written[i] != told[i] {
				return fmt.Sprintf("watcher %d: saw %v where %v was written", watcher, written[i], told[i])
			}
		}
	}
	return ""
}
