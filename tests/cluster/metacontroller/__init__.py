"""What tests beside metacontroller share: its examples' hooks as local processes, and a hook that records requests."""
