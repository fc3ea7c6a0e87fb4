package main

import (
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The two indexes, which the other contenders that can have them keep, too.

func owners(object any) []string {
	pod := object.(*corev1.Pod)
	uids := make([]string, 0, len(pod.OwnerReferences))
	for _, owner := range pod.OwnerReferences {
		uids = append(uids, string(owner.UID))
	}
	return uids
}

func node(object any) []string {
	return []string{object.(*corev1.Pod).Spec.NodeName}
}

// processor is the time that this process has had of any core.
func processor() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
