"""Built on protocols: audits, a client's own ledger, statistics of a crowd, deployments."""
