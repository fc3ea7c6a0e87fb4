"""Access questions: thousands of requests that kube-apiserver has answered, and this server must answer alike."""
