// Command informer fills client-go's shared informer of Pods and prints how long that took and what it costs as JSON.
//
//	informer KUBECONFIG NAMESPACE json|protobuf
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type result struct {
	Seconds   float64 `json:"seconds"`   // from the start of the informer to the end of its first list
	CPU       float64 `json:"cpu"`       // seconds of this process in that time
	Objects   int     `json:"objects"`   // in the store
	Resident  int     `json:"resident"`  // bytes, right after the sync
	Collected int     `json:"collected"` // bytes, after a collection that gives back all it can
	Peak      int     `json:"peak"`      // bytes, at the worst until then
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: informer KUBECONFIG NAMESPACE json|protobuf")
		os.Exit(2)
	}
	measured, err := measure(os.Args[1], os.Args[2], os.Args[3])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(kubeconfig, namespace, encoding string) (result, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return result{}, err
	}
	config.QPS = -1
	config.ContentType = "application/json"
	if encoding == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	config.AcceptContentTypes = config.ContentType // or a server may choose another
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return result{}, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	by := cache.Indexers{
		"owner": func(object any) ([]string, error) { return owners(object), nil },
		"node":  func(object any) ([]string, error) { return node(object), nil },
	}
	if err := informer.AddIndexers(by); err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := processor()
	begun := time.Now()
	factory.Start(ctx.Done())
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond) // WaitForCacheSync looks only every tenth of a second
	}
	measured := result{Seconds: time.Since(begun).Seconds(), CPU: (processor() - before).Seconds()}
	measured.Objects = len(informer.GetStore().ListKeys())
	measured.Resident = memory("VmRSS:")
	measured.Peak = memory("VmHWM:")
	debug.FreeOSMemory()
	measured.Collected = memory("VmRSS:")
	return measured, nil
}

// memory is a line of what Linux tells of this process, in bytes.
func memory(name string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			kilobytes, _ := strconv.Atoi(fields[1])
			return kilobytes * 1024
		}
	}
	return 0
}
