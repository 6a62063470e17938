"""Numerical companion to five documents on differential privacy in federated learning."""
