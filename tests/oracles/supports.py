"""What five local randomizers send, message by message, written down from their definitions; nothing of the library."""

import itertools
import math


def rappor(epsilon0, k):
    flip = 1 / (math.exp(epsilon0 / 2) + 1)
    return _bits(k, lambda own: 1 - flip if own else flip)


def oue(epsilon0, k):
    return _bits(k, lambda own: 0.5 if own else 1 / (math.exp(epsilon0) + 1))


def _bits(k, one):
    messages = list(itertools.product((0, 1), repeat=k))
    rows = [
        [math.prod(one(x == z) if bit else 1 - one(x == z) for z, bit in enumerate(bits)) for bits in messages]
        for x in range(k)
    ]
    return messages, rows


def subset(epsilon0, k):
    size = max(round(k / (math.exp(epsilon0) + 1)), 1)
    sets = list(itertools.combinations(range(k), size))
    weights = [[math.exp(epsilon0) if x in one else 1.0 for one in sets] for x in range(k)]
    messages = [tuple(int(z in one) for z in range(k)) for one in sets]
    return messages, [[w / sum(row) for w in row] for row in weights]


def hadamard(epsilon0, k):
    matrix = [[1]]
    while len(matrix) < k + 1:
        matrix = [row + row for row in matrix] + [row + [-x for x in row] for row in matrix]
    weights = [[math.exp(epsilon0) if sign > 0 else 1.0 for sign in matrix[x + 1]] for x in range(k)]
    return list(range(len(matrix))), [[w / sum(row) for w in row] for row in weights]


def local_hash(epsilon0, k):
    numbers = max(round(math.exp(epsilon0) + 1), 2)
    messages = [(*h, y) for h in itertools.product(range(numbers), repeat=k) for y in range(numbers)]
    chance = 1 / (math.exp(epsilon0) + numbers - 1) / numbers**k
    rows = [[chance * (math.exp(epsilon0) if m[x] == m[-1] else 1.0) for m in messages] for x in range(k)]
    return messages, rows


TABLES = {"rappor": rappor, "oue": oue, "subset": subset, "hadamard": hadamard, "local-hash": local_hash}
