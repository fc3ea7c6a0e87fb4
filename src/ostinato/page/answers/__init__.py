"""Answers of the page to its front end and to commands, one module for each subject."""
