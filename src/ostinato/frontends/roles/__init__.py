"""Ansible roles and playbooks as operators, as in operator-sdk's Ansible operator.

memcached = Role("roles/memcached").for_kind("Memcached", group="cache.example.com", version="v1alpha1")
"""

from __future__ import annotations

from ostinato.frontends.roles.controller import Playbook, Role, RoleController
from ostinato.frontends.roles.options import Content, RoleFinalizer, RoleOptions
from ostinato.frontends.roles.reconciler import RoleFailed
from ostinato.frontends.roles.runner import AnsibleMissing, Job, Runner

__all__ = [
    "AnsibleMissing",
    "Content",
    "Job",
    "Playbook",
    "Role",
    "RoleController",
    "RoleFailed",
    "RoleFinalizer",
    "RoleOptions",
    "Runner",
]
