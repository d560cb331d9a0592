"""Answers to a person's question why a VM or a node is as it is; nothing is planned."""
