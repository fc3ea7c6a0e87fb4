"""Actions on a release: install, upgrade, roll back, uninstall."""
