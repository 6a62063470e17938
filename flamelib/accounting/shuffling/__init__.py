"""One shuffle of any local randomizer: closed form, certified numbers, exact values, accuracy."""
