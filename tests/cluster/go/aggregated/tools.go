//go:build tools

package tools

import (
	_ "k8s.io/sample-apiserver"
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
