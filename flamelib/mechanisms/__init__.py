"""The mechanism side: it turns values into messages and never computes an epsilon."""
