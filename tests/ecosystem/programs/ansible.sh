# program: Ansible kubernetes.core (ansible 12)
# pip: ansible==12.3.0 kubernetes==37.0.2
cat > play.yaml <<'YAML'
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  tasks:
  - kubernetes.core.k8s:
      state: present
      wait: true
      wait_timeout: 60
      definition:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: default}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: nginx}]}
    register: first
  - kubernetes.core.k8s_info: {kind: Pod, namespace: default, label_selectors: [app=web]}
    register: pods
  - assert: {that: [first.changed, pods.resources | length == 2]}
  - kubernetes.core.k8s_scale: {kind: Deployment, api_version: apps/v1, name: web, namespace: default, replicas: 3}
  - kubernetes.core.k8s: {state: absent, kind: Deployment, api_version: apps/v1, name: web, namespace: default, wait: true}
YAML
ansible-playbook -i localhost, play.yaml
