"""An etcd that kube-apiserver and this server share, one after the other and at the same time."""
