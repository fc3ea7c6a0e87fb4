// Command queue measures the work queue of client-go and the priority queue of controller-runtime the way bench/queue.py
// measures Ostinato's, and prints nanoseconds per key as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

const rounds = 5

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: queue COUNT")
		os.Exit(2)
	}
	keys := make([]string, count)
	for i := range keys {
		keys[i] = "default/pod-" + strconv.Itoa(i)
	}
	results := map[string]float64{
		"fill and drain": best(keys, fillAndDrain),
		"one at a time":  best(keys, oneAtATime),
		"priorities":     best(keys, priorities),
		"delayed add":    best(keys, delayedAdd),
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		panic(err)
	}
}

func best(keys []string, run func([]string) time.Duration) float64 {
	shortest := run(keys)
	for range rounds - 1 {
		shortest = min(shortest, run(keys))
	}
	return float64(shortest.Nanoseconds()) / float64(len(keys))
}

func fillAndDrain(keys []string) time.Duration {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	begun := time.Now()
	for _, key := range keys {
		queue.Add(key)
	}
	for range keys {
		key, _ := queue.Get()
		queue.Done(key)
	}
	return time.Since(begun)
}

func oneAtATime(keys []string) time.Duration {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	begun := time.Now()
	for _, key := range keys {
		queue.Add(key)
		key, _ := queue.Get()
		queue.Done(key)
	}
	return time.Since(begun)
}

func priorities(keys []string) time.Duration {
	queue := priorityqueue.New[string]("")
	defer queue.ShutDown()
	low, raised := -100, 0
	begun := time.Now()
	for i, key := range keys {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, key)
		if i%4 == 0 {
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: &raised}, key)
		}
	}
	for range keys {
		key, _, _ := queue.GetWithPriority()
		queue.Done(key)
	}
	return time.Since(begun)
}

func delayedAdd(keys []string) time.Duration {
	queue := workqueue.NewTypedDelayingQueue[string]()
	defer queue.ShutDown()
	begun := time.Now()
	for i, key := range keys {
		queue.AddAfter(key, time.Hour+time.Duration(i%1000)*time.Second)
	}
	return time.Since(begun)
}
